"""What can be requested about the business account itself, and an agency's operations on its sub-accounts."""

from marketing_api.operation import Effect, an_id, choice, each, email, flag, number, read, text, write
from marketing_api.records import account

ME = read("app/me", "The business that the key belongs to.", at="business", records=(account.Business,), rows=account.business)

AUTOLOGIN = read(
    "account/getsubaccountautologin",
    "A URL that logs into a sub-account without a password.",
    an_id("id", "Sub-account id.", required=True),
    number("expire", "Seconds that the URL stays valid.", maximum=3600),
    members=("login-url",),
    is_secret=True,
)

CREATEACCOUNT = write(
    "register/createaccount",
    "Create a business account under the agency.",
    *each(text, "contact_name", "business_name", required=True),
    email("business_email", required=True),
    text("business_phone", required=True),
    number("plan_id", required=True),
    text("business_service_name", "The account's short name on the service. Optional in a variant.", required=True),
    text("business_password", secret=True),
    text("business_vat_number"),
    text("timezone", "A time zone name of the tz database."),
    choice("commission_structure", "1", "2", doc="1: discount to the paid amount; 2: normal commission payout."),
    *each(flag, "disable_billing_access", "disable_settings_access"),
    flag("pay_on_signup", "Charge the agency's saved card on successful signup and save the card to the new account."),
    effect=Effect.SEND,
)
