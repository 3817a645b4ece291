"""What can be requested about the business account itself."""

from marketing_api.operation import Area
from marketing_api.records import account

AREA = Area(__file__)

ME = AREA.filling("app/me", account.business, account.Business)
