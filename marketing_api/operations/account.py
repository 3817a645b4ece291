"""What can be requested about the business account itself."""

from marketing_api.operation import read
from marketing_api.records import account

ME = read("app/me", "The business that the key belongs to.", at="business", records=(account.Business,), rows=account.business)
