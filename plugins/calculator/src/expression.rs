//! Arithmetic expressions: a recursive-descent parser that evaluates while it parses.
//!
//! ```text
//! sum     = product (("+" | "-") product)*
//! product = sign (("*" | "/" | "%") sign)*
//! sign    = ("-" | "+") sign | power
//! power   = atom ("^" sign)?
//! atom    = number | name | name "(" sum ("," sum)* ")" | "(" sum ")"
//! ```

use std::fmt::{self, Display, Formatter};

/// Maximum nesting of parentheses and signs: far more than anyone writes, and far less than the
/// stack of a plugin can hold.
const MAX_DEPTH: usize = 100;

/// An error and its position.
#[derive(Debug, PartialEq)]
pub(crate) struct Mistake {
    /// The position, in characters from 1.
    position: usize,
    message: String,
}

impl Display for Mistake {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self { position, message } = self;
        write!(formatter, "{message} at character {position}")
    }
}

/// Evaluates an expression.
pub(crate) fn evaluate(text: &str) -> Result<f64, Mistake> {
    let mut reader = Reader {
        text,
        rest: text,
        depth: 0,
    };
    let value = reader.sum()?;
    match reader.peek() {
        None => Ok(value),
        Some(found) => Err(reader.mistake(format!("expected an operator, found `{found}`"))),
    }
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn sum(&mut self) -> Result<f64, Mistake> {
        let mut value = self.product()?;
        loop {
            if self.eat('+') {
                value += self.product()?;
            } else if self.eat('-') {
                value -= self.product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, Mistake> {
        let mut value = self.sign()?;
        loop {
            if self.eat('*') {
                value *= self.sign()?;
            } else if self.eat('/') {
                value /= self.divisor()?;
            } else if self.eat('%') {
                value %= self.divisor()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn divisor(&mut self) -> Result<f64, Mistake> {
        self.peek();
        let before = self.rest;
        let divisor = self.sign()?;
        if divisor == 0.0 {
            self.rest = before;
            return Err(self.mistake("division by zero"));
        }
        Ok(divisor)
    }

    /// All recursion passes through this function.
    fn sign(&mut self) -> Result<f64, Mistake> {
        if self.depth == MAX_DEPTH {
            return Err(self.mistake(format!("nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let value = if self.eat('-') {
            -self.sign()?
        } else if self.eat('+') {
            self.sign()?
        } else {
            self.power()?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn power(&mut self) -> Result<f64, Mistake> {
        let base = self.atom()?;
        if self.eat('^') {
            return Ok(base.powf(self.sign()?));
        }
        Ok(base)
    }

    fn atom(&mut self) -> Result<f64, Mistake> {
        match self.peek() {
            Some('(') => {
                self.eat('(');
                let value = self.sum()?;
                self.expect(')')?;
                Ok(value)
            }
            Some(first) if first.is_ascii_digit() || first == '.' => self.number(),
            Some(first) if first.is_alphabetic() => self.name(),
            Some(found) => Err(self.mistake(format!("expected a number, found `{found}`"))),
            None => Err(self.mistake("expected a number, found the end")),
        }
    }

    fn number(&mut self) -> Result<f64, Mistake> {
        let digits = self
            .rest
            .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        // An exponent requires digits: `2e` is 2 and a name.
        let exponent = digits
            .strip_prefix(['e', 'E'])
            .map(|rest| rest.strip_prefix(['+', '-']).unwrap_or(rest))
            .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
        let (number, rest) = self.split(exponent.unwrap_or(digits));
        let Ok(value) = number.parse() else {
            return Err(self.mistake(format!("`{number}` is not a number")));
        };
        self.rest = rest;
        Ok(value)
    }

    fn name(&mut self) -> Result<f64, Mistake> {
        let after = self
            .rest
            .trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
        let before = self.rest;
        let (name, rest) = self.split(after);
        self.rest = rest;
        if self.eat('(') {
            let arguments = self.arguments()?;
            if let Some(value) = call(name, &arguments) {
                return Ok(value);
            }
        } else if let Some(value) = constant(name) {
            return Ok(value);
        }
        self.rest = before;
        Err(self.mistake(unknown(name)))
    }

    fn arguments(&mut self) -> Result<Vec<f64>, Mistake> {
        let mut arguments = vec![self.sum()?];
        while self.eat(',') {
            arguments.push(self.sum()?);
        }
        self.expect(')')?;
        Ok(arguments)
    }

    /// Splits the input into the consumed part and `rest`.
    fn split(&self, rest: &'a str) -> (&'a str, &'a str) {
        self.rest.split_at(self.rest.len() - rest.len())
    }

    /// Returns the next character that is not white space.
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn eat(&mut self, wanted: char) -> bool {
        self.peek();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char) -> Result<(), Mistake> {
        if self.eat(wanted) {
            return Ok(());
        }
        let found = self
            .peek()
            .map_or("the end".to_owned(), |found| format!("`{found}`"));
        Err(self.mistake(format!("expected `{wanted}`, found {found}")))
    }

    fn mistake(&self, message: impl Into<String>) -> Mistake {
        let read = self.text.chars().count() - self.rest.chars().count();
        Mistake {
            position: read + 1,
            message: message.into(),
        }
    }
}

fn constant(name: &str) -> Option<f64> {
    match name {
        "pi" => Some(std::f64::consts::PI),
        "e" => Some(std::f64::consts::E),
        _ => None,
    }
}

fn call(name: &str, arguments: &[f64]) -> Option<f64> {
    match (name, arguments) {
        ("abs", [x]) => Some(x.abs()),
        ("sqrt", [x]) => Some(x.sqrt()),
        ("exp", [x]) => Some(x.exp()),
        ("ln", [x]) => Some(x.ln()),
        ("log10", [x]) => Some(x.log10()),
        ("sin", [x]) => Some(x.sin()),
        ("cos", [x]) => Some(x.cos()),
        ("tan", [x]) => Some(x.tan()),
        ("round", [x]) => Some(x.round()),
        ("floor", [x]) => Some(x.floor()),
        ("ceil", [x]) => Some(x.ceil()),
        ("min", numbers) => numbers.iter().copied().reduce(f64::min),
        ("max", numbers) => numbers.iter().copied().reduce(f64::max),
        _ => None,
    }
}

fn unknown(name: &str) -> String {
    format!(
        "`{name}` is unknown here: there are `pi`, `e`, functions of one number (`abs`, `sqrt`, \
         `exp`, `ln`, `log10`, `sin`, `cos`, `tan`, `round`, `floor`, `ceil`) and of several \
         (`min`, `max`)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: f64) {
        let value = evaluate(text).unwrap();
        assert!((value - expected).abs() < 1e-12, "{text} = {value}");
    }

    fn mistake(text: &str) -> String {
        evaluate(text).unwrap_err().to_string()
    }

    #[test]
    fn operators_bind_as_in_school() {
        check("1 + 2 * 3", 7.0);
        check("(1 + 2) * 3", 9.0);
        check("8 - 2 - 1", 5.0);
        check("8 / 2 / 2", 2.0);
        check("7 % 4", 3.0);
        check("2 ^ 3 ^ 2", 512.0);
        check("-2 ^ 2", -4.0);
        check("2 ^ -1", 0.5);
        check("2 * -3", -6.0);
        check("--3", 3.0);
    }

    #[test]
    fn numbers_have_every_form() {
        check(" .5 ", 0.5);
        check("1e3", 1000.0);
        check("1.5E-1", 0.15);
        check("e", std::f64::consts::E);
        check("2 * pi", std::f64::consts::TAU);
    }

    #[test]
    fn functions_take_what_they_take() {
        check("sqrt(16)", 4.0);
        check("max(1, 5, 3) - min(4, 2)", 3.0);
        check("log10(1000) + ln(e)", 4.0);
        check("round(2.5) + floor(-0.5) + ceil(0.1)", 3.0);
        check("abs(-1) + exp(0) + sin(0) + cos(0) + tan(0)", 3.0);
    }

    #[test]
    fn mistakes_have_a_place() {
        assert_eq!(
            mistake(""),
            "expected a number, found the end at character 1"
        );
        assert_eq!(
            mistake("1 + * 2"),
            "expected a number, found `*` at character 5"
        );
        assert_eq!(
            mistake("(1 + 2"),
            "expected `)`, found the end at character 7"
        );
        assert_eq!(
            mistake("1 2"),
            "expected an operator, found `2` at character 3"
        );
        assert_eq!(mistake("1.2.3"), "`1.2.3` is not a number at character 1");
        assert!(mistake("1 + foo(2)").ends_with("at character 5"));
        assert!(mistake("sqrt(1, 2)").starts_with("`sqrt` is unknown here"));
        assert_eq!(mistake("1 / (2 - 2)"), "division by zero at character 5");
    }

    #[test]
    fn depth_has_a_limit() {
        check(&format!("{}1{}", "(".repeat(99), ")".repeat(99)), 1.0);
        let deep = format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(mistake(&deep).starts_with("nested more than 100 deep"));
        assert!(mistake(&"-".repeat(100_000)).starts_with("nested more than"));
        assert!(mistake(&"2^".repeat(100_000)).starts_with("nested more than"));
    }
}
