"""Quickstarts: schemas that are there already. Names, fields and keys are those of Confluent's where it has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Quickstart:
    doc: str
    key: str
    """The field that becomes the key of records."""
    schema: str
    """In our own notation."""


_TIME: Final = "long(1704067200000, 1735689599999)"
_USER: Final = "pattern('User_[1-9]')"

QUICKSTARTS: Final[Mapping[str, Quickstart]] = {
    "clickstream": Quickstart(
        "requests to a web server",
        "ip",
        """ip choice('111.152.45.45', '111.203.236.146', '111.168.57.122', '111.249.79.93', '111.90.225.227',
        '122.152.45.245', '122.168.57.222', '122.203.236.246', '122.249.79.233', '222.152.45.45'),
        userid int(1, 40), remote_user choice('-'), time walk(2024-01-01, 1000), _time sequence(1, 10),
        request choice('GET /index.html HTTP/1.1'=5, 'GET /images/logo.png HTTP/1.1'=3, 'GET /site/login.html HTTP/1.1',
        'GET /site/user_status.html HTTP/1.1', 'POST /api/orders HTTP/1.1'),
        status choice('200'=20, '302'=2, '404'=2, '405', '406', '407'),
        bytes choice('278', '1289', '2048', '4006', '4096', '14096'),
        referrer choice('-'=3, 'https://www.example.com/', 'https://search.example/'), agent user_agent""",
    ),
    "clickstream_codes": Quickstart(
        "what the statuses of `clickstream` mean",
        "code",
        """code cycle(200, 302, 404, 405, 406, 407), definition cycle('Successful', 'Redirect', 'Page not found',
        'Method not allowed', 'Not acceptable', 'Proxy authentication required')""",
    ),
    "clickstream_users": Quickstart(
        "the users of `clickstream`, one after the other, again and again",
        "user_id",
        f"""user_id sequence(1, 1, 40), username pattern('[a-z]{{5,8}}_[0-9]{{2}}') by user_id,
        registered_at {_TIME} by user_id, first_name first_name by user_id, last_name last_name by user_id,
        city city by user_id, level choice(Gold, Silver, Platinum) by user_id""",
    ),
    "customers": Quickstart(
        "customers with logical types: Date, Timestamp and Decimal; not one of Confluent's",
        "customer_id",
        """customer_id sequence(1), name name, email email, born date(1940-01-01, 2005-12-31),
        since walk(2024-01-01, 60000), balance money(-500, 5000), vip boolean(0.05),
        address { street pattern('[1-9][0-9]? (Lake|Hill|Mill|Park) Street'), city city, country country } ?0.1,
        tags array(word, 0, 3), settings map(word, boolean, 0, 3), note sentence ?0.7""",
    ),
    "inventory": Quickstart(
        "how many of a product there are", "id", "id sequence(1), quantity long(0, 100), productid long(0, 99)"
    ),
    "orders": Quickstart(
        "orders with an address in them",
        "orderid",
        f"""ordertime {_TIME}, orderid sequence, itemid pattern('Item_[1-9][0-9]{{0,2}}'),
        orderunits double(0.1, 10), address {{ city pattern('City_[1-9][0-9]?'),
        state pattern('State_[1-9][0-9]?'), zipcode long(10000, 99999) }}""",
    ),
    "pageviews": Quickstart(
        "who looked at which page",
        "viewtime",
        f"viewtime sequence(1, 10), userid {_USER}, pageid pattern('Page_[1-9][0-9]?')",
    ),
    "purchases": Quickstart(
        "items that were bought",
        "id",
        """id sequence, item_type choice(bread, milk, eggs, apples, rice, coffee, cheese, olives), quantity int(1, 20),
        price_per_unit double(0.5, 30, 2)""",
    ),
    "ratings": Quickstart(
        "what passengers say of their flights",
        "rating_id",
        """rating_id sequence(1), user_id int(1, 20), stars int(1, 5), route_id int(1, 10000),
        rating_time walk(2024-01-01, 1000), channel choice(web, ios, android, 'ios-test'), message sentence""",
    ),
    "sensors": Quickstart(
        "measurements of two hundred sensors, each at its place; not one of Confluent's",
        "sensor_id",
        """sensor_id long(1, 200), site city by sensor_id, time walk(2024-01-01, 50), temperature double(-20, 45, 1),
        humidity double(0, 100, 1), battery int(0, 100) ?0.02""",
    ),
    "stock_trades": Quickstart(
        "trades of test symbols",
        "symbol",
        f"""side choice(BUY, SELL, SHORT), quantity int(1, 4999),
        symbol choice(ZBZX, ZJZZT, ZTEST, ZVV, ZVZZT, ZWZZT, ZXZZT), price int(5, 999),
        account choice(ABC123, LMN456, XYZ789), userid {_USER}""",
    ),
    "transactions": Quickstart(
        "payments by card",
        "transaction_id",
        """transaction_id sequence(1), card_id long(1, 20), user_id pattern('User_[1-9]') by card_id,
        purchase_id sequence, store_id int(1, 7)""",
    ),
    "users": Quickstart(
        "the users of `pageviews`",
        "userid",
        f"registertime {_TIME}, userid {_USER}, regionid pattern('Region_[1-9]'), gender choice(MALE, FEMALE, OTHER)",
    ),
    "users_": Quickstart(
        "the same with an array and a map",
        "userid",
        f"""registertime {_TIME}, userid {_USER}, regionid pattern('Region_[1-9]'), gender choice(MALE, FEMALE, OTHER),
        interests array(choice(Game, Movies, News, Sport, Travel), 2, 2),
        contactinfo map(choice(home, mobile, work), pattern('[2-9][0-9]{{2}}-555-01[0-9]{{2}}'), 1, 3)""",
    ),
}
