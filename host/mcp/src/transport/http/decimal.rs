//! Decimal numbers in their JSON notation, compared exactly and with any number of digits.

/// A number in JSON notation. Equality compares values and not notations: `1000`, `1e3` and
/// `1000.0` are equal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DecimalNumber<'a> {
    negative: bool,
    /// The digits without leading and trailing zeros; empty for zero.
    digits: DecimalDigits<'a>,
    /// The power of ten of the last digit; 0 for zero.
    exponent: i64,
}

/// The digits before and after the decimal point.
#[derive(Debug)]
struct DecimalDigits<'a>(&'a str, &'a str);

impl DecimalDigits<'_> {
    fn bytes(&self) -> impl Iterator<Item = u8> + '_ {
        self.0.bytes().chain(self.1.bytes())
    }
}

impl PartialEq for DecimalDigits<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes().eq(other.bytes())
    }
}

impl Eq for DecimalDigits<'_> {}

impl<'a> DecimalNumber<'a> {
    /// Parses a JSON number (RFC 8259, section 6), without `+` and without leading zeros. Returns
    /// `None` if the text is not a number, or if its exponent has more than 64 bits.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (negative, text) = text
            .strip_prefix('-')
            .map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (text, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) if is_digits(fraction) => (whole, fraction),
            Some(_) => return None,
            None => (mantissa, ""),
        };
        if !is_digits(whole) || (whole.len() > 1 && whole.starts_with('0')) {
            return None;
        }
        let exponent = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        let mut digits = DecimalDigits(whole.trim_start_matches('0'), fraction);
        if digits.0.is_empty() {
            digits.1 = digits.1.trim_start_matches('0');
        }
        let before = digits.0.len() + digits.1.len();
        digits.1 = digits.1.trim_end_matches('0');
        if digits.1.is_empty() {
            digits.0 = digits.0.trim_end_matches('0');
        }
        let after = digits.0.len() + digits.1.len();
        if after == 0 {
            // -0 is 0.
            return Some(Self {
                negative: false,
                digits,
                exponent: 0,
            });
        }
        let exponent = exponent.checked_add(i64::try_from(before - after).ok()?)?;
        Some(Self {
            negative,
            digits,
            exponent,
        })
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn parse_exponent(text: &str) -> Option<i64> {
    is_digits(text.strip_prefix(['+', '-']).unwrap_or(text)).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_and_not_how_they_are_written() {
        let same = [
            ["42", "42.0"],
            ["42", "42.000"],
            ["1000", "1e3"],
            ["1000", "1E+3"],
            ["1000", "10000e-1"],
            ["-1200", "-1.2e3"],
            ["0", "-0"],
            ["0", "0.000e-7"],
            ["0.001", "1e-3"],
            ["0.0010", "10e-4"],
            ["18446744073709551617", "18446744073709551617.0"],
            ["1e400", "10e399"],
            ["1e9223372036854775806", "10e9223372036854775805"],
        ];
        for [one, other] in same {
            assert_eq!(
                DecimalNumber::parse(one).unwrap(),
                DecimalNumber::parse(other).unwrap(),
                "{one} {other}"
            );
        }
        let different = [
            ["42", "43"],
            ["42", "-42"],
            ["42", "420"],
            ["42", "4.2"],
            // As floating-point numbers these are the same.
            ["9007199254740993", "9007199254740992"],
            ["18446744073709551617", "18446744073709551616"],
            ["1e400", "1e401"],
            ["0.1", "0.10000000000000000000000001"],
        ];
        for [one, other] in different {
            assert_ne!(
                DecimalNumber::parse(one).unwrap(),
                DecimalNumber::parse(other).unwrap(),
                "{one} {other}"
            );
        }
    }

    #[test]
    fn what_json_does_not_write_is_no_number() {
        let wrong = [
            "",
            "-",
            "+1",
            "01",
            "-01",
            "00",
            ".5",
            "5.",
            "1e",
            "1e+",
            "1.e3",
            "e3",
            " 1",
            "1 ",
            "1_000",
            "0x10",
            "NaN",
            "inf",
            "--1",
            "1e1.0",
            "1,0",
            "\u{0661}",
            "1e99999999999999999999",
            "1e+-3",
        ];
        for text in wrong {
            assert_eq!(DecimalNumber::parse(text), None, "{text:?}");
        }
    }
}
