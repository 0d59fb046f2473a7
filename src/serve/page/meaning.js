/* meaning.js - what numbers mean: times of the CF conventions, scale and offset, missing values. */

const DAY = 86400e3;
const UNITS = {
    days: DAY,
    day: DAY,
    d: DAY,
    hours: 36e5,
    hour: 36e5,
    hr: 36e5,
    h: 36e5,
    minutes: 6e4,
    minute: 6e4,
    min: 6e4,
    seconds: 1e3,
    second: 1e3,
    sec: 1e3,
    s: 1e3,
    milliseconds: 1,
    millisecond: 1,
    msec: 1,
    ms: 1,
    microseconds: 1e-3,
    us: 1e-3,
    nanoseconds: 1e-6,
    ns: 1e-6,
};
const MONTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const pad = (n, digits) => String(Math.abs(n)).padStart(digits, "0");

function dateText(year, month, day, ms) {
    ms = Math.round(ms);
    const s = Math.floor(ms / 1000),
        rest = ms % 1000;
    const time =
        `${pad(Math.floor(s / 3600), 2)}:${pad(Math.floor(s / 60) % 60, 2)}:${pad(s % 60, 2)}` +
        (rest ? "." + pad(rest, 3) : "");
    return `${year < 0 ? "-" : ""}${pad(year, 4)}-${pad(month, 2)}-${pad(day, 2)} ${time}`;
}

/* Calendars whose years are all alike: days of each month. */
const EVEN = {
    noleap: MONTHS,
    "365_day": MONTHS,
    all_leap: MONTHS.map((n, i) => n + (i === 1)),
    "366_day": MONTHS.map((n, i) => n + (i === 1)),
    "360_day": Array(12).fill(30),
};

function evenDays(months, year, month, day) {
    return year * months.reduce((a, b) => a + b) + months.slice(0, month - 1).reduce((a, b) => a + b, 0) + day - 1;
}
function evenDate(months, days) {
    const length = months.reduce((a, b) => a + b);
    let year = Math.floor(days / length),
        rest = days - year * length,
        month = 0;
    while (rest >= months[month]) rest -= months[month++];
    return [year, month + 1, rest + 1];
}
/* Days since 1970-01-01 of the Julian calendar's dates, and back. */
function julianDays(year, month, day) {
    const a = Math.floor((14 - month) / 12),
        y = year + 4800 - a,
        m = month + 12 * a - 3;
    return day + Math.floor((153 * m + 2) / 5) + 365 * y + Math.floor(y / 4) - 32083 - 2440588;
}
function julianDate(days) {
    const c = days + 2440588 + 32082,
        d = Math.floor((4 * c + 3) / 1461),
        e = c - Math.floor((1461 * d) / 4),
        m = Math.floor((5 * e + 2) / 153);
    return [d - 4800 + Math.floor(m / 10), m + 3 - 12 * Math.floor(m / 10), e - Math.floor((153 * m + 2) / 5) + 1];
}
const FIRST_GREGORIAN = -141427; /* 1582-10-15 */
function utcDays(year, month, day) {
    const date = new Date(0);
    date.setUTCFullYear(year, month - 1, day);
    return Math.round(date.getTime() / DAY);
}
function daysOf(calendar, year, month, day) {
    if (EVEN[calendar]) return evenDays(EVEN[calendar], year, month, day);
    if (calendar === "julian") return julianDays(year, month, day);
    const days = utcDays(year, month, day);
    return calendar !== "proleptic_gregorian" && days < FIRST_GREGORIAN ? julianDays(year, month, day) : days;
}
function dateOf(calendar, days) {
    if (EVEN[calendar]) return evenDate(EVEN[calendar], days);
    if (calendar === "julian" || (calendar !== "proleptic_gregorian" && days < FIRST_GREGORIAN))
        return julianDate(days);
    const date = new Date(days * DAY);
    return [date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate()];
}

/* "days since 1970-01-01": a function from numbers to texts, or null. */
function timeOf(units, calendar) {
    const parts =
        /^\s*(\w+)\s+since\s+([+-]?\d+)-(\d+)-(\d+)(?:[T\s]+(\d+):(\d+)(?::(\d+(?:\.\d*)?))?)?\s*(?:Z|UTC|GMT|([+-]\d\d?):?(\d\d)?)?\s*$/i.exec(
            units || "",
        );
    const name = String(calendar || "standard").toLowerCase(),
        unit = parts && UNITS[parts[1].toLowerCase()];
    if (!unit || !(name in EVEN || ["standard", "gregorian", "proleptic_gregorian", "julian"].includes(name)))
        return null;
    /* The standard and the Julian calendar go from the year -1 to the year 1. */
    const gap = ["standard", "gregorian", "julian"].includes(name) ? 1 : 0;
    const begin = daysOf(name, +parts[2] + (+parts[2] < 0 ? gap : 0), +parts[3], +parts[4]);
    const zone = parts[8] ? (+parts[8] * 60 + Math.sign(+parts[8]) * +(parts[9] || 0)) * 6e4 : 0;
    const clock = ((+parts[5] || 0) * 60 + (+parts[6] || 0)) * 6e4 + (+parts[7] || 0) * 1e3 - zone;
    return number => {
        const ms = clock + number * unit,
            days = Math.floor(ms / DAY);
        if (!Number.isFinite(ms) || Math.abs(days) >= 1e8) return "not a time";
        const [year, month, day] = dateOf(name, begin + days);
        return dateText(year - (year <= 0 ? gap : 0), month, day, ms - days * DAY);
    };
}

const NATIVE = { Y: null, M: null, W: 7 * DAY, D: DAY, h: 36e5, m: 6e4, s: 1e3, ms: 1, us: 1e-3, μs: 1e-3, ns: 1e-6 };
function nativeTime(type) {
    const parsed = typeof type === "string" && type.startsWith("{") ? JSON.parse(type) : type;
    if (!parsed || parsed.name !== "numpy.datetime64") return null;
    const factor = parsed.configuration.scale_factor || 1,
        unit = parsed.configuration.unit;
    return number => {
        if (!(Math.abs(number) < 9.2e18)) return "NaT";
        if (unit === "Y") return String(1970 + number * factor);
        if (unit === "M")
            return `${1970 + Math.floor((number * factor) / 12)}-${pad(((((number * factor) % 12) + 12) % 12) + 1, 2)}`;
        const ms = number * factor * NATIVE[unit],
            days = Math.floor(ms / DAY);
        return Math.abs(days) < 1e8
            ? dateText(...dateOf("proleptic_gregorian", days), ms - days * DAY)
            : String(number);
    };
}

const show = n =>
    typeof n === "bigint"
        ? String(n)
        : Number.isNaN(n)
          ? "NaN"
          : Number.isInteger(n) || !Number.isFinite(n)
            ? String(n)
            : String(+n.toPrecision(7));

/* How elements of a node are read: by CF's attributes, or as they are stored. */
function readerOf(node, raw) {
    const at = (node.document || node).attributes || {},
        native = nativeTime(node.dtype);
    const one = v => (Array.isArray(v) && v.length === 1 ? v[0] : v);
    const scale = one(at.scale_factor),
        offset = one(at.add_offset);
    const missing = [at._FillValue, at.missing_value].flat().filter(v => typeof v === "number");
    const time = raw ? null : native || timeOf(at.units, at.calendar);
    const bits = at._Unsigned === "true" && /^int(8|16|32)$/.exec(node.dtype);
    const coded = typeof scale === "number" || typeof offset === "number" || missing.length > 0 || bits;
    const number = v => {
        let n = Number(v);
        if (native) return n < -9.2e18 ? NaN : n;
        if (raw) return n;
        if (missing.includes(n)) return NaN;
        if (bits && n < 0) n += 2 ** +bits[1];
        return coded ? n * (typeof scale === "number" ? scale : 1) + (typeof offset === "number" ? offset : 0) : n;
    };
    return {
        number,
        coded: Boolean(coded || (timeOf(at.units, at.calendar) && !native)),
        time,
        units: raw || time ? "" : typeof at.units === "string" ? at.units : "",
        text: v =>
            node.dtype === "bool"
                ? String(Boolean(v))
                : time
                  ? time(number(v))
                  : coded && !raw
                    ? show(number(v))
                    : show(v),
    };
}
