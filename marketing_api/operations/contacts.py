"""What can be requested about contacts, their timelines and coupons, and how contacts, tags and activities are written."""

from marketing_api.operation import Area
from marketing_api.records import contacts, timelines

AREA = Area(__file__)

GETCONTACTS = AREA.filling("emailmarketing/getcontacts", contacts.contacts, contacts.Contact)
GETCONTACTBYEMAIL = AREA["emailmarketing/getcontactbyemail"]
GETCONTACT = AREA["emailmarketing/getcontact"]
_TIMELINE = timelines.TimelineEvent, timelines.TimelineVisit, timelines.TimelineAutomation
TIMELINE = AREA.filling("emailmarketing/getcontacttimeline", timelines.timeline, *_TIMELINE)
GETCOUPON = AREA.filling("emailmarketing/getcoupon", contacts.coupons, contacts.Coupon)

EDITCONTACT = AREA["emailmarketing/editcontact"]
SYNCCONTACT = AREA["emailmarketing/synccontact"]
MOVECONTACT = AREA["emailmarketing/movecontact"]
DELETECONTACT = AREA["emailmarketing/deletecontact"]
ADDACTIVITY = AREA["emailmarketing/addactivity"]
ADDTAG = AREA["emailmarketing/addtag"]
REMOVETAG = AREA["emailmarketing/removetag"]
