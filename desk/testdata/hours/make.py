"""Makes cases.txt, which TestHours_cases reads: python3 desk/testdata/hours/make.py

Whether it is open at an instant, and until when, as Python's zoneinfo says, with the zones
of ../../zones.zip. It knows nothing of how parley computes them: it walks over all minutes.
"""

import datetime as dt
import io
import json
import os
import random
import zipfile
import zoneinfo

HERE = os.path.dirname(__file__)
ZIP = zipfile.ZipFile(os.path.join(HERE, "..", "..", "zones.zip"))
ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "America/Sao_Paulo", "Asia/Kathmandu", "Europe/Dublin"]
SPAN = (dt.datetime(2009, 1, 1, tzinfo=dt.timezone.utc), dt.datetime(2031, 1, 1, tzinfo=dt.timezone.utc))
DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
rnd = random.Random(14)


def zone(name):
    return zoneinfo.ZoneInfo.from_file(io.BytesIO(ZIP.read(name)), key=name)


def shifts(z):
    """All instants at which the zone's offset changes, to the minute."""
    t, step, found = SPAN[0], dt.timedelta(hours=6), []
    while t < SPAN[1]:
        if (t + step).astimezone(z).utcoffset() != t.astimezone(z).utcoffset():
            u = t
            while (u + dt.timedelta(minutes=1)).astimezone(z).utcoffset() == t.astimezone(z).utcoffset():
                u += dt.timedelta(minutes=1)
            found.append(u + dt.timedelta(minutes=1))
        t += step
    return found


def hhmm(m):
    return "%02d:%02d" % (m // 60, m % 60)


def spans():
    """Up to four, often in the hours in which clocks are shifted."""
    marks = sorted(rnd.sample(range(0, 24 * 4 + 1), 2 * rnd.randint(0, 4)))
    if rnd.random() < 0.5:
        marks = sorted(rnd.sample(range(0, 21), 2 * rnd.randint(0, 3)))
    return [[hhmm(15 * a), hhmm(15 * b)] for a, b in zip(marks[::2], marks[1::2])]


def is_open(hours, z, t):
    local = t.astimezone(z)
    day = hours["exceptions"].get(local.date().isoformat())
    if day is None:
        day = hours["week"].get(DAYS[local.weekday()], [])
    now = hhmm(60 * local.hour + local.minute)
    return any(a <= now < b for a, b in day)


def until(hours, z, t):
    now, end = is_open(hours, z, t), t + dt.timedelta(days=15)
    u = t.replace(second=0, microsecond=0) + dt.timedelta(minutes=1)
    while u <= end:
        if is_open(hours, z, u) != now:
            return u
        u += dt.timedelta(minutes=1)
    return None


def stamp(t):
    return t.strftime("%Y-%m-%dT%H:%M:%S.") + "%03dZ" % (t.microsecond // 1000)


with open(os.path.join(HERE, "cases.txt"), "w") as out:
    per_zone = 625
    for name in ZONES:
        z = zone(name)
        near = shifts(z)
        for n in range(per_zone):
            if n % 25 == 0:  # another policy; now and then one that is hardly ever open
                week = {d: spans() for d in DAYS if rnd.random() < (0.05 if n % 100 == 75 else 0.8)}
                hours = {"week": week, "exceptions": {}}
                for t in near:
                    if rnd.random() < 0.2:
                        hours["exceptions"][t.astimezone(z).date().isoformat()] = spans()
                exceptions = [{"date": d, "open": o} for d, o in sorted(hours["exceptions"].items())]
                out.write("%s %s\n" % (name, json.dumps({"week": week, "exceptions": exceptions}, separators=(",", ":"))))
            if near and n < 2 * len(near):  # before and after every shift
                t = near[n // 2] + dt.timedelta(minutes=rnd.randint(-90, -1) if n % 2 else rnd.randint(0, 90), seconds=rnd.choice([0, 0, 59]))
            elif near and n % 2:
                t = rnd.choice(near) + dt.timedelta(milliseconds=rnd.randint(-86_400_000, 86_400_000))
            else:
                t = SPAN[0] + (SPAN[1] - SPAN[0]) * rnd.random()
                t = t.replace(microsecond=t.microsecond // 1000 * 1000)
            end = until(hours, z, t)
            out.write("%s %s %s\n" % (stamp(t), "open" if is_open(hours, z, t) else "closed", stamp(end) if end else "-"))
