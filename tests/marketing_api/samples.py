"""One sample of `data` for every read that fills tables, shaped as specified (numbers as strings)."""

from typing import Any

BUSINESS = {
    "business": {
        "id": "77",
        "businessName": "Corner Café",
        "contactName": "Ada",
        "phoneNumber": "+1 555 0100",
        "serviceName": "corner",
        "package": "Pro",
    }
}
DIRECT = {
    "reviews": {
        "count": 1,
        "items": [
            {
                "id": "5",
                "email": "ann@example.com",
                "phone": "",
                "date": "05/16/2013",
                "time": "10:34 AM",
                "inquiry": "Good soup",
                "notes": "",
                "rating": "Good",
            }
        ],
    }
}
ONLINE = {
    "reviews": {
        "count": 2,
        "items": {
            "Yelp": {
                "AvgRating": "4.5",
                "data": [
                    {
                        "username": "bob",
                        "date": "1383582780",
                        "inquiry": "Nice",
                        "rating": 'a:1:{s:5:"value";s:1:"4";}',
                        "sourceUrl": "https://yelp.example/1",
                    }
                ],
            },
            "Zagat": {"AvgRating": None},
        },
    }
}
SENTIMENT = {
    "sentiment": {
        "overall": {"stats": {"positives": 2, "negatives": 1}},
        "items": {
            "Positives": [
                {"inquiry": "Great", "social": "Twitter", "reviewdate": "08/15/2013"},
                {"inquiry": "Great", "social": "Twitter", "reviewdate": "08/15/2013"},
            ],
            "Negatives": [{"inquiry": "Bad", "social": "Yelp", "reviewdate": "08/16/2013"}],
        },
    }
}
REPUTATION_STATS = {
    "stats": {
        "items": [],
        "Reviews": [{"periode": "2013-08-15", "good": "3", "bad": "1"}],
        "SocialMedia": [{"periode": "2013-08-15", "twitter": 2, "facebook": 0, "mastodon": "5"}],
        "FeedbackHub": [{"periode": "2013-08-15", "views": "12"}],
    }
}
CHANNELS = {
    "channels": {
        "Facebook": {"count": 1, "pages": [{"id": "123456789012345678901", "name": "Corner Café"}]},
        "Twitter": {"count": 1, "profiles": [{"id": "9", "screenname": "corner", "fullname": "Corner Café"}]},
        "Linkedin": {"count": 1, "profiles": [], "companies": [{"id": "urn:li:7", "name": "Corner Ltd"}]},
    }
}
POST = {
    "id": "31",
    "message": "Hello",
    "photo": {"thumb": "https://img.example/t.png", "original": "https://img.example/o.png"},
    "channel": {
        "network": "Facebook",
        "type": "page",
        "id": "12",
        "name": "Corner Café",
        "date": "04/02/2026 09:15 AM",
    },
}
CALENDAR = {"calendar": {"count": 1, "items": {"2026-04-02": {"1": POST}}}}
POST_DETAIL = {
    "item": {
        "id": "31",
        "title": "Hello",
        "datetime": "04/02/2026 09:15 AM",
        "item": {"uid": "12_99"},
        "type": "facebook",
        "image": "https://img.example/o.png",
        "profile": "Corner Café",
    }
}
LINKS = {
    "stats": {
        "items": [
            {
                "id": "8",
                "shortenurl": "https://s.example/a",
                "realurl": "https://corner.example/menu",
                "message": "See the menu",
                "date": "1383582780",
                "tracks": 4,
                "clicks": {"Facebook": 3, "Twitter": "1"},
            }
        ]
    }
}
CAMPAIGN = {
    "id": "41",
    "subject": "Spring",
    "message": "<p>Hello</p>",
    "replyto": "hi@example.com",
    "from_email": "news@example.com",
    "from_name": "Corner Café",
    "creation_date": "11/04/2014 16:33",
}
CAMPAIGNS = {
    "campaigns": {
        "count": 2,
        "items": {"Draft": {"data": [CAMPAIGN]}, "Automation": {"data": [{**CAMPAIGN, "id": "42"}]}},
    }
}
CAMPAIGN_DETAIL = {"item": CAMPAIGN}
CAMPAIGN_STATS = {
    "campaign": {
        "stats": {
            "open": "11 (366.67%)",
            "unopened": "3 (27.3%)",
            "bounced": "0 (0%)",
            "unsubscribed": "1 (9.1%)",
        },
        "clicks": [
            {
                "url": "https://corner.example/menu",
                "message": "Menu",
                "clickers": ["ann@example.com(2 clicks)", "bob@example.com(1 click)"],
            },
            {
                "url": "https://corner.example/menu",
                "message": "Menu again",
                "clickers": ["ann@example.com(3 clicks)"],
            },
            {"url": "https://corner.example/none", "message": "Nobody"},
        ],
    }
}
CONTACTS = {
    "contacts": {
        "count": "2",
        "items": [
            {
                "id": "1001",
                "email": "ann@example.com",
                "status": "1",
                "registration_date": "11/04/2014 16:33",
            },
            {
                "id": "1002",
                "email": "bob@example.com",
                "status": "3",
                "registration_date": "11/05/2014 08:00",
                "fields": {"12": "London"},
            },
        ],
    }
}
TIMELINE: dict[str, Any] = {
    "id": 1001,
    "email": "ann@example.com",
    "timeline": {
        "data": [
            {
                "key": "email-campaign-sent",
                "snippet": "Spring was sent",
                "timestamp": 1383582780,
                "datetime": "11/04/2013 11:33",
                "details": [{"key": "open-date", "label": "Opened", "value": "11/05/2013 08:00"}],
            },
            {
                "key": "automation-triggered",
                "snippet": "Welcome",
                "datetime": "08/15/2013 14:52 PM",
                "details": [],
            },
        ],
        "count": 2,
        "total": 9,
    },
    "utm": {
        "data": [
            {
                "link": "https://corner.example/menu",
                "utm": {
                    "campaign": "spring",
                    "source": "mail",
                    "medium": "email",
                    "term": "",
                    "content": None,
                },
                "timestamp": 1383582780,
                "datetime": "11/04/2013 11:33",
            }
        ],
        "count": 1,
    },
    "automated": {
        "data": [
            {
                "name": "Welcome",
                "type": "sms",
                "timestamp": 1383582780,
                "datetime": "11/04/2013 11:33",
                "details": [{"key": "message", "value": 5}],
            }
        ],
        "count": 1,
    },
}
COUPONS = {
    "coupons": [
        {
            "id": "3",
            "email": "ann@example.com",
            "couponcode": "SPRING",
            "couponredeemed": "1",
            "couponredeemedon": "11/04/2014",
        },
        {
            "id": "4",
            "email": "ann@example.com",
            "couponcode": "SUMMER",
            "couponredeemed": "0",
            "couponredeemedon": "N/A",
        },
    ]
}
LIST = {
    "id": "5",
    "name": "Newsletter",
    "form_title": "Join",
    "email_subject": "Please confirm",
    "reply_to": "hi@example.com",
    "from_email": "news@example.com",
    "from_name": "Corner Café",
    "confimation_email": "<p>[CONFIRM]</p>",
    "success_email": "",
    "confimation_message": "Check your mail",
    "success_message": "Done",
    "error_message": "Sorry",
    "doubleOptin": "1",
    "notify_email": "",
    "creation_date": "11/04/2014 16:33",
}
LISTS = {"lists": {"count": 1, "items": [LIST]}}
LIST_DETAIL = {"list": {**LIST, "fields": {"12": "City", "13": "Birthday"}}}
AUDIENCES = {"audiences": {"count": 1, "items": [{"id": "6", "name": "Regulars"}]}}
USERS = {
    "users": {
        "count": 2,
        "items": {
            "77": {
                "users": {
                    "1": {"fullname": "Ada", "username": "ada", "group": "Staff", "status": "Active"},
                    "2": {"fullname": "Ben", "username": "ben", "status": "Active"},
                }
            }
        },
    }
}
MANAGERS = {
    "users": {
        "count": 1,
        "items": [{"id": "3", "fullname": "Mia", "email": "mia@example.com", "status": "Active"}],
    }
}
GROUPS = {"groups": {"count": 1, "items": [{"id": "4", "name": "Staff", "status": "Active"}]}}
GOAL = {
    "id": "21",
    "name": "Order",
    "goal_value": {"type": "Fixed", "value": "80.0000"},
    "type": "Event Triggered",
    "event_type": "Link(s) Clicked",
    "event_link_rule": "All of the links are clicked",
    "links": ["https://corner.example/order", "https://corner.example/thanks"],
    "has_action": "Yes",
    "action": {"id": "9", "name": "Action is deleted!"},
}
GOALS = {"goals": {"count": 1, "items": [GOAL]}}
GOAL_DETAIL = {"goal": GOAL}
WEBHOOK = {
    "id": "61",
    "name": "Stay",
    "type": "On Page Exit",
    "domain_id": "2",
    "url": {"filter": "Matches Exactly", "link": "https://corner.example/"},
    "action_type": "HTML Message",
    "action_rules": {
        "execute_for": "All",
        "device_filter": "Desktop",
        "interval": "One time",
        "delay": {"hours": "1", "minutes": 2, "seconds": "3"},
    },
    "action_stype": "Popup",
}
WEBHOOKS = {"webhooks": {"count": 1, "items": [WEBHOOK]}}
WEBHOOK_DETAIL = {"webhook": WEBHOOK}

#: operation -> (data, parameters it was asked with)
SAMPLES: dict[str, tuple[Any, dict[str, Any]]] = {
    "app/me": (BUSINESS, {}),
    "reputation/direct": (DIRECT, {}),
    "reputation/online": (ONLINE, {}),
    "reputation/sentiment": (SENTIMENT, {"from_": "2013-08-01", "to": "2013-08-31"}),
    "reputation/stats": (REPUTATION_STATS, {"from_": "2013-08-01", "to": "2013-08-31"}),
    "socialmedia/channels": (CHANNELS, {}),
    "socialmedia/calendar": (CALENDAR, {"from_": "2026-04-01", "to": "2026-04-30"}),
    "socialmedia/getpost": (POST_DETAIL, {"id": 31, "channel": "facebook"}),
    "socialmedia/stats": (LINKS, {}),
    "emailmarketing/campaigns": (CAMPAIGNS, {}),
    "emailmarketing/getcampaign": (CAMPAIGN_DETAIL, {"id": 41, "type": "standard"}),
    "emailmarketing/stats": (CAMPAIGN_STATS, {"id": 41, "type": "standard"}),
    "emailmarketing/getcontacts": (CONTACTS, {"listid": 5}),
    "emailmarketing/getcontacttimeline": (TIMELINE, {"id": 1001, "include": "utm,automated"}),
    "emailmarketing/getcoupon": (COUPONS, {"email": "ann@example.com"}),
    "emailmarketing/getlists": (LISTS, {}),
    "emailmarketing/getlist": (LIST_DETAIL, {"id": 5}),
    "emailmarketing/getaudiences": (AUDIENCES, {}),
    "user/lists": (USERS, {}),
    "user/managers": (MANAGERS, {}),
    "user/groups": (GROUPS, {}),
    "goal/lists": (GOALS, {}),
    "goal/listbydomain": (GOALS, {"domainid": 2}),
    "goal/show": (GOAL_DETAIL, {"id": 21}),
    "webhook/lists": (WEBHOOKS, {}),
    "webhook/show": (WEBHOOK_DETAIL, {"id": 61}),
}
