// The search needs a server: where pages are opened as files, there is no field for it.
if (location.protocol === "file:") document.querySelectorAll(".md-search, [for=__search]").forEach((part) => (part.style.display = "none"));
