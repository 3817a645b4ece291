"""The vocabulary of the seeded business, a restaurant with a cooking school and a small shop. Every link is at a reserved domain."""

from __future__ import annotations

import unicodedata


def _plain(name: str) -> tuple[str, str]:
    """A name and its letters as they stand in an address."""
    folded = unicodedata.normalize("NFKD", name.replace("ø", "o").replace("ł", "l").replace("Ł", "L").replace("ß", "ss"))
    return name, "".join(letter for letter in folded.lower() if "a" <= letter <= "z")


_FIRST = """
Ada Aisha Alba Alejandro Amelia Amir Ana André Anika Anna Anton Aoife Ava Beatriz Ben Björn Bruno Camila Carlos Carmen Chiara
Chloé Clara Daan Daniel Dario David Deepa Diego Dmitri Eleni Elif Ella Emeka Emil Emma Erik Eva Fatima Felix Fernanda Filip Finn
Florence Frida Gabriel George Grace Greta Hana Hannah Hassan Helena Henry Hugo Ida Ines Ingrid Isaac Isla Ivan Jack Jakub James
Jana Jasmine Jin João Jonas José Julia Karim Karin Kate Katja Kenji Khadija Kofi Lars Laura Layla Lena Leo Liam Lina Linh Lotte
Louis Lucas Lucía Luisa Maja Marco Maria Mariam Marta Mateo Matilda Max Maya Mehmet Mei Mia Miguel Mila Milan Mina Mohamed Nadia
Naomi Nia Nils Nina Noah Noor Nora Olga Oliver Olivia Omar Oscar Paolo Paula Pedro Petra Priya Rafael Rosa Ruth Saki Sam Samira
Sara Sofia Søren Stefan Tara Tariq Theo Thomas Tomás Uma Vera Viktor William Yara Yasmin Yuki Zainab Zoë
"""
FIRST_NAMES = tuple(_plain(name) for name in _FIRST.split())
_LAST = """
Abbott Adeyemi Ahmed Ali Almeida Andersson Baker Barros Bauer Becker Bennett Berg Bianchi Brown Carter Castro Chen Clark Costa
Cruz Czerny Dahl Das Davies Diaz Dubois Dupont Eriksen Evans Fernandes Ferrari Fischer Fletcher Foster Fujita García Gomez
González Gray Green Gupta Haddad Hall Hansen Harris Hassan Hernández Hill Hoffmann Holm Horváth Hughes Hussein Ibrahim Ito Ivanova
Jackson Jansen Jensen Johansson Jones Kaplan Karlsson Kaur Keller Khan Kim King Klein Kovács Kowalski Kumar Larsen Laurent Lee
Lehmann Lewis Li Lima Lindberg López Łukasik Mahmoud Marino Martin Martínez Mensah Meyer Miller Mishra Moore Moreau Morgan Moretti
Müller Murphy Nagy Nakamura Nguyen Nielsen Novak Nowak O'Brien O'Neill Ode Okafor Olsen Ortega Osei Owusu Park Patel Pereira Pérez
Peters Petrov Popescu Price Ramos Reed Reyes Ricci Richter Rivera Roberts Rossi Russo Sánchez Santos Sato Schmidt Schneider Shah
Sharma Silva Singh Smith Sørensen Sousa Stein Suzuki Svensson Tanaka Taylor Thomas Torres Tran Turner Vargas Vasquez Vega Virtanen
Wagner Walker Wang Ward Watson Weber Weiß White Wilson Wójcik Wolf Wood Wright Yamada Yilmaz Young Zhang Zhou Zimmermann
"""
LAST_NAMES = tuple(_plain(name) for name in _LAST.split())
CITIES = (
    "Ashford", "Bellhaven", "Brookfield", "Cedar Point", "Clearwater", "Eastgate", "Fairview", "Glenwood", "Harbor Hill", "Kingsbridge",
    "Lakeside", "Millbrook", "Northfield", "Oak Park", "Riverton", "Saint-Rémy", "Stonebridge", "Westport", "Whitby", "Zürichberg",
)  # fmt: skip

BUSINESSES = (
    ("Harbor Street Kitchen", "Helena Ortega", "harborstreet"),
    ("The Copper Ladle", "Marco Rossi", "copperladle"),
    ("Juniper & Thyme", "Nora Lindberg", "juniperthyme"),
    ("Lantern House Bistro", "Emil Keller", "lanternhouse"),
    ("Olive Grove Table", "Lucía Vega", "olivegrove"),
)
SITE = "https://www.example.com"

#: Name, share of all contacts, and the words on its form. The shares of the seeded lists sum to 1.
LISTS = (
    ("Newsletter", 0.42, "News from our kitchen"),
    ("Loyalty club", 0.25, "Join the club"),
    ("Events and tastings", 0.16, "Be the first to know"),
    ("Online shop", 0.11, "Your order"),
    ("Corporate catering", 0.06, "Plan your event with us"),
)
AUDIENCES = (
    "Opened in the last 90 days", "Never opened", "Birthday this month", "Visited twice", "Lapsed guests", "Wine lovers", "Families",
)  # fmt: skip
#: Custom fields of every list: position in the id → label.
FIELDS = ("First Name", "Last Name", "Phone", "City", "Last Visit")

#: Subject and first line; `{month}` is filled in, which makes every subject unique.
CAMPAIGNS = (
    ("What's cooking in {month}", "Six new dishes, one old favourite, and a word from the chef."),
    ("Your table by the window, {month}", "Quiet evenings: book now and choose your seat."),
    ("A coupon for you: 15% off in {month}", "Show this at the counter, as often as you like."),
    ("Tasting night in {month}", "Five wines, five plates, forty guests."),
    ("Inside the kitchen, {month} edition", "Meet the people who bake your bread."),
    ("Learn to fold dumplings in {month}", "Our class has twelve places."),
    ("Market notes: {month}", "Asparagus, rhubarb & other arrivals."),
    ("Two for one, weekdays in {month}", "Bring somebody you like. Coupon inside."),
    ("Catering menus for {month}", "Boxes, buffets and everything between."),
    ("The shop has restocked: {month}", "Olive oil, jars and a new spice box."),
)
DRAFTS = (
    "Anniversary dinner (to be written)", "Gift cards – new design", "Survey: what should we change?",
    "Terrace opening (waiting for photos)",
)  # fmt: skip
LINKS = (
    (f"{SITE}/menu", "See the menu"),
    (f"{SITE}/book", "Book a table"),
    (f"{SITE}/classes", "Cooking classes"),
    (f"{SITE}/shop?utm_content=grid", "Visit the shop"),
    (f"{SITE}/coupon", "Use your coupon"),
    ("https://blog.example.org/from-the-kitchen", "Read the story"),
)

GOOD = (
    "Lovely evening, the staff remembered us.",
    "The tasting menu was worth every cent.",
    "Best bread in town – please never change it.",
    "Great with children, fast and friendly.",
    "We celebrated a birthday and felt at home. Merci!",
    "The dumpling class was so much fun.",
    "Delivery came early and still hot.",
    "Quiet table, good light, perfect risotto.",
)
BAD = (
    "Waited 40 minutes for a starter.",
    "Too loud to talk, and the soup was cold.",
    "Our booking was lost; nobody apologised.",
    "The delivery arrived without the dessert.",
    'Small portions for the price "promised" online.',
    "Music so loud that we left after the main course.",
)
NOTES = ("Called back, will come again.", "Sent an apology and a voucher.", "Thanked by mail.", "Forwarded to the kitchen.")
#: Display name → the word by which the `channels` parameter calls it.
REVIEW_CHANNELS = {
    "Yelp": "yelp", "TripAdvisor": "tripadvisor", "CitySearch": "citysearch", "Foursquare": "foursquare",
    "Google Places": "googleplaces", "Zagat": "zagat", "MenuPage": "menupage", "OpenTable": "opentable",
}  # fmt: skip
POSTS = (
    ("Today's special", "Saffron risotto with roasted fennel. Until it's gone!"),
    ("New on the shelf", "Lemon olive oil from the coast: {link}"),
    ("Behind the scenes", "5:30 a.m. and the ovens are already warm."),
    ("Class photos", "Look at these dumplings! Next class: {link}"),
    ("We're hiring", "Line cook, evenings. Come and say hello."),
    ("Guest chef", "One night only, seven courses, forty seats. {link}"),
    ("Thank you", "1,000 guests this month. You're the best ❤"),
    ("Market day", "Rhubarb is back. So is our crumble."),
    ("Recipe", "Grandmother's tomato sauce, step by step: {link}"),
    ("Terrace", "Sun until nine. Tables outside are open."),
)
