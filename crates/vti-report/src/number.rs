//! Numbers as people read them: a real minus sign, no more digits than mean something, powers of ten only where needed.

/// What stands for a number that is not there.
pub(crate) const MISSING: &str = "–";

/// `value` with `digits` significant digits.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    if let Some(text) = special(value) {
        return text;
    }
    let exponent = exponent_of(value, digits);
    if !(-4..6).contains(&exponent) {
        return scientific(value, exponent, digits.saturating_sub(1));
    }
    fixed(value, (digits as i32 - 1 - exponent).max(0) as usize)
}

/// A whole number.
pub(crate) fn count(value: u64) -> String {
    fixed(value as f64, 0)
}

/// A probability: three decimals, and small ones as powers of ten.
pub(crate) fn probability(value: f64) -> String {
    if !value.is_finite() || value < 0.0 {
        MISSING.into()
    } else if value == 0.0 {
        "0".into()
    } else if value < 0.000_95 {
        scientific(value, exponent_of(value, 2), 1)
    } else if value > 0.9995 && value < 1.0 {
        "> 0.999".into()
    } else {
        fixed(value, 3)
    }
}

/// `value ± error`, both to the second significant digit of the error. Without a usable error the value alone.
pub(crate) fn with_error(value: f64, error: f64) -> String {
    if !value.is_finite() || !error.is_finite() || error <= 0.0 {
        return significant(value, 4);
    }
    let decimals = 1 - exponent_of(error, 2);
    if decimals > 6 || exponent_of(value.abs().max(error), 4) >= 6 {
        return format!("{} ± {}", significant(value, 4), significant(error, 2));
    }
    let decimals = decimals.max(0) as usize;
    format!("{} ± {}", fixed(value, decimals), fixed(error, decimals))
}

/// A probability with its standard error.
pub(crate) fn probability_with_error(value: f64, error: f64) -> String {
    let shown = probability(value);
    if shown == MISSING || !error.is_finite() || error <= 0.0 {
        return shown;
    }
    let error = if error < 0.000_95 { scientific(error, exponent_of(error, 1), 0) } else { fixed(error, 3) };
    format!("{shown} ± {error}")
}

/// The label of a tick at `value` when ticks are `step` apart, a number of one digit.
pub(crate) fn tick(value: f64, step: f64) -> String {
    if let Some(text) = special(value) {
        return text;
    }
    let (first, last) = (exponent_of(value, 6), exponent_of(step, 3));
    if first >= 7 || last < -5 {
        return scientific(value, first, (first - last).clamp(0, 6) as usize);
    }
    fixed(value, (-last).max(0) as usize)
}

/// 10ⁿ.
pub(crate) fn power_of_ten(exponent: i32) -> String {
    let raised = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4'..='9' => char::from_u32(u32::from(c) - u32::from('4') + u32::from('⁴')).unwrap_or(c),
        _ => '⁰',
    };
    "10".chars().chain(exponent.to_string().chars().map(raised)).collect()
}

fn special(value: f64) -> Option<String> {
    let text = match value {
        _ if value.is_nan() => MISSING,
        f64::INFINITY => "∞",
        f64::NEG_INFINITY => "−∞",
        0.0 => "0",
        _ => return None,
    };
    Some(text.into())
}

/// The power of ten of the leading digit once `value` is rounded to `digits` digits.
fn exponent_of(value: f64, digits: usize) -> i32 {
    let written = format!("{:.*e}", digits.saturating_sub(1), value.abs());
    written.rsplit('e').next().and_then(|exponent| exponent.parse().ok()).unwrap_or(0)
}

fn scientific(value: f64, exponent: i32, decimals: usize) -> String {
    let written = format!("{value:.decimals$e}");
    let mantissa = written.split('e').next().unwrap_or_default().replace('-', "−");
    format!("{mantissa}×{}", power_of_ten(exponent))
}

/// Fixed decimals, thousands set apart from 10,000 on, no minus before a zero.
fn fixed(value: f64, decimals: usize) -> String {
    let written = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = written.split_at(written.find('.').unwrap_or(written.len()));
    let negative = value < 0.0 && written.bytes().any(|b| (b'1'..=b'9').contains(&b));
    let mut text = String::from(if negative { "−" } else { "" });
    for (index, digit) in whole.chars().enumerate() {
        if whole.len() > 4 && index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn significant_digits() {
        let table = [
            (0.0, "0"),
            (0.562_31, "0.5623"),
            (-12.3456, "−12.35"),
            (9.999_96, "10.00"),
            (12_345.6, "12\u{202f}346"),
            (1_234_567.0, "1.235×10⁶"),
            (-0.000_012_345, "−1.234×10⁻⁵"),
            (f64::NAN, "–"),
            (f64::NEG_INFINITY, "−∞"),
        ];
        for (value, text) in table {
            assert_eq!(significant(value, 4), text, "{value}");
        }
    }

    #[test]
    fn errors_decide_how_many_digits_a_value_has() {
        let table = [
            ((0.512_345, 0.0142), "0.512 ± 0.014"),
            ((-80.25, 1.0), "−80.2 ± 1.0"),
            ((1234.5, 99.6), "1234 ± 100"),
            ((0.1, 0.0), "0.1000"),
            ((0.1, f64::NAN), "0.1000"),
            ((f64::NAN, 0.1), "–"),
            ((-0.0004, 0.12), "0.00 ± 0.12"),
            ((2.5e9, 1.0e7), "2.500×10⁹ ± 1.0×10⁷"),
        ];
        for ((value, error), text) in table {
            assert_eq!(with_error(value, error), text, "{value} {error}");
        }
    }

    #[test]
    fn probabilities() {
        let table = [(0.0, "0"), (1.0, "1.000"), (0.99996, "> 0.999"), (0.1234, "0.123"), (0.000_042, "4.2×10⁻⁵")];
        for (value, text) in table {
            assert_eq!(probability(value), text);
        }
        assert_eq!(probability(f64::INFINITY), MISSING);
        assert_eq!(probability_with_error(0.25, 0.011), "0.250 ± 0.011");
        assert_eq!(probability_with_error(0.25, 0.000_04), "0.250 ± 4×10⁻⁵");
    }

    #[test]
    fn ticks_have_the_decimals_of_their_step() {
        let table = [(0.5, 0.05, "0.50"), (-200.0, 100.0, "−200"), (2.0e8, 1.0e8, "2×10⁸"), (0.0, 0.1, "0")];
        for (value, step, text) in table {
            assert_eq!(tick(value, step), text);
        }
    }
}
