"""Words: what names, places and sentences are made of."""

from __future__ import annotations

from typing import Final


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST_NAMES: Final = _words(
    "Ada Aisha Alan Amina Anna Anton Aurora Ben Bianca Bruno Camila Carl Chen Clara Daniel Diego Dora Elena Elias Emil"
    " Emma Farid Felix Fiona Gabriel Grace Greta Hana Hugo Ida Igor Ines Isaac Ivan Jana Jonas Julia Kaito Karim Kemal"
    " Lara Leo Lina Lucas Maja Malik Maria Mateo Mila Mina Nadia Nils Nora Olga Omar Oscar Paula Pavel Priya Quentin"
    " Rafael Rosa Ruth Samir Sara Sofia Stefan Tariq Theo Uma Vera Victor Wanda Xavier Yara Yusuf Zoe"
)
LAST_NAMES: Final = _words(
    "Abe Adams Ahmed Alvarez Andersson Baker Bauer Berg Bianchi Brown Campos Carter Chen Costa Cruz Dahl Diaz Dubois"
    " Eriksen Evans Fischer Fontana Garcia Ghosh Gomez Green Gruber Haddad Hansen Hill Horvat Hughes Ito Ivanova"
    " Jansen Jones Kaya Keller Khan Kim Klein Kowalski Kumar Lang Larsen Lee Lopez Maier Martin Mendes Meyer Moreau"
    " Mori Nagy Nguyen Novak Okafor Olsen Patel Peters Petrov Popescu Ramos Rossi Santos Sato Schmidt Silva Singh"
    " Smith Sousa Tanaka Torres Turner Vargas Virtanen Wagner Walker Weber Wong Yilmaz Young Zhang"
)
CITIES: Final = (
    "Accra", "Amsterdam", "Athens", "Auckland", "Barcelona", "Berlin", "Bogota", "Boston", "Brisbane", "Cairo",
    "Cape Town", "Chennai", "Chicago", "Copenhagen", "Dakar", "Denver", "Dublin", "Durban", "Edinburgh", "Geneva",
    "Hamburg", "Hanoi", "Helsinki", "Istanbul", "Jakarta", "Kyoto", "Lagos", "Lima", "Lisbon", "London", "Lyon",
    "Madrid", "Manila", "Melbourne", "Milan", "Montreal", "Mumbai", "Munich", "Nairobi", "New York", "Osaka", "Oslo",
    "Ottawa", "Paris", "Porto", "Prague", "Quito", "Riga", "Rome", "San Diego", "Santiago", "Sao Paulo", "Seattle",
    "Seoul", "Singapore", "Stockholm", "Sydney", "Tallinn", "Tokyo", "Toronto", "Tunis", "Vienna", "Vilnius", "Warsaw",
    "Zurich",
)  # fmt: skip
COUNTRIES: Final = (
    "Argentina", "Australia", "Austria", "Brazil", "Canada", "Chile", "Colombia", "Croatia", "Denmark", "Egypt",
    "Estonia", "Finland", "France", "Germany", "Ghana", "Greece", "India", "Indonesia", "Ireland", "Italy", "Japan",
    "Kenya", "Latvia", "Lithuania", "Mexico", "Morocco", "Netherlands", "New Zealand", "Nigeria", "Norway", "Peru",
    "Philippines", "Poland", "Portugal", "Romania", "Senegal", "Singapore", "South Africa", "South Korea", "Spain",
    "Sweden", "Switzerland", "Thailand", "Tunisia", "Turkey", "United Kingdom", "United States", "Vietnam",
)  # fmt: skip
WORDS: Final = _words(
    "able above across after again amber answer apple arrow autumn basket beacon before below bird blue boat bread"
    " bridge bright brook candle careful castle chair circle clear cloud coast cold copper corner country cover dark"
    " day deep delta door dream early earth east echo evening every fair far feather field final fire first flat"
    " floor flower forest fresh garden gentle glass gold grain grass green ground harbor heavy high hill honey horizon"
    " house island ivory journey kind lake lamp large late leaf lemon light linen little long lucky maple market meadow"
    " middle mild mirror moon morning mountain narrow near new night noble north ocean often old olive open orange"
    " other paper path pearl pine plain plum quick quiet rain rare red river road round sail salt sand second shadow"
    " sharp shore silent silver simple sky slow small smooth snow soft song south spring square star steady stone"
    " storm summer sunny sure sweet table tall thin third tower tree true valley velvet violet warm water wave west"
    " white wide wild wind window winter wood yellow young"
)
DOMAINS: Final = ("example.com", "example.net", "example.org", "mail.example", "post.example")
USER_AGENTS: Final = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:127.0) Gecko/20100101 Firefox/127.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Safari/605.1.15",
    "Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
    "Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (compatible; ExampleBot/2.1; +https://bot.example/)",
    "curl/8.8.0",
)
