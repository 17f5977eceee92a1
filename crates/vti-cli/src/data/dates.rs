//! Dates as numbers of days.

/// Days since 1970-01-01 of an ISO date, with the share of the day where there is a time: `2024-02-29`,
/// `2024-02-29T12:30:00Z`. Time zones other than UTC are none.
pub(super) fn days(text: &str) -> Option<f64> {
    let (date, rest) = (text.get(..10)?, text.get(10..)?);
    let [year, month, day] = <[&str; 3]>::try_from(date.split('-').collect::<Vec<_>>()).ok()?;
    if (year.len(), month.len(), day.len()) != (4, 2, 2) {
        return None;
    }
    let [year, month, day] = [whole(year)?, whole(month)?, whole(day)?];
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let place = usize::try_from(month).ok()?.checked_sub(1)?;
    if !(1..=*lengths.get(place)?).contains(&day) {
        return None;
    }
    let before: i64 = lengths[..place].iter().sum();
    // Leap years before this one.
    let leaps = |year: i64| (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400;
    let start = if year == 0 { -366 } else { (year - 1) * 365 + leaps(year) };
    Some((start + before + day - 1 - 719_162) as f64 + time(rest)?)
}

fn whole(text: &str) -> Option<i64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// The share of a day that has passed.
fn time(text: &str) -> Option<f64> {
    if text.is_empty() {
        return Some(0.0);
    }
    let text = text.strip_prefix(['T', ' '])?;
    let text = ["Z", "+00:00", " UTC"].iter().find_map(|zone| text.strip_suffix(zone)).unwrap_or(text).trim_end();
    let mut parts = text.split(':');
    let (hours, minutes, seconds) = (whole(parts.next()?)?, whole(parts.next()?)?, parts.next().unwrap_or("0"));
    let is_number = seconds.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds: f64 = seconds.parse().ok().filter(|_| is_number && parts.next().is_none())?;
    let fits = hours < 24 && minutes < 60 && seconds < 61.0;
    fits.then_some((hours as f64 * 3600.0 + minutes as f64 * 60.0 + seconds) / 86_400.0)
}
