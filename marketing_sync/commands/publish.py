"""Publish the copy for analysts, and write the report."""

import uuid

from home import exits, output
from home.folder import prepare_home
from home.options import JSON, Option
from home.settings import Settings
from home.values import storage_url
from marketing_api.clock import utc_now
from marketing_sync.commands import declare_command, print_error
from marketing_sync.uploading import upload_published
from pipelines.published_copy import (
    describe_published,
    list_failed_custom_tables,
    published_document,
)
from pipelines.publishing import note_run, publish_home
from report.mail import Reports
from warehouse.publish import published_path


@declare_command(
    Option(
        "to",
        "upload the copy and status.json to this folder or object storage, like s3://BUCKET/MAIN",
        str,
        storage_url,
        metavar="URL",
    ),
    JSON,
    needs_keys=False,
)
def publish(settings: Settings, to: str | None, json: bool) -> int:
    """If a check fails, the previous copy stays. The exit code is 1 if a check or a custom table
    fails."""
    prepare_home(settings.home, settings.lock_seconds)
    with note_run(settings, str(uuid.uuid4()), "publish"):
        published = publish_home(settings)
    path, _, mailed = Reports().make_report(settings)
    uploaded = upload_published(settings, to) if to else None
    failed_tables = list_failed_custom_tables(settings)
    code = exits.INCOMPLETE if failed_tables else exits.DONE
    if json:
        document = published_document(settings, published)
        assert document is not None
        output.print_json(output.Publication(document, str(path), uploaded, failed_tables))
        return code
    print(f"{published_path(settings.home)}: {describe_published(published, utc_now())}")
    print(f"{path}: the report of it{f'; {mailed}' if mailed else ''}")
    for line in failed_tables:
        print_error(line, code)
    if uploaded:
        print(f"{uploaded}: uploaded")
    return code
