//! Arithmetic tools.

mod expression;
mod statistics;

use serde::{Deserialize, Serialize};
use statistics::Statistics;
use toolbay_plugin::prelude::*;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Summands {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Numbers {
    /// The numbers, such as `[1, 2.5, -3]`.
    #[schemars(length(min = 1, max = 100_000))]
    numbers: Vec<f64>,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    /// The sum.
    sum: f64,
}

#[derive(Serialize, JsonSchema)]
struct Total {
    /// The total.
    total: f64,
}

/// Adds two numbers. For more of them, use `calculate_total`.
#[tool(title = "Sum", read_only, idempotent, open_world = false)]
fn calculate_sum(args: Summands) -> Result<Json<Sum>> {
    let sum = finite(args.a + args.b)?;
    Ok(Json(Sum { sum }))
}

/// Adds up a list of numbers, with a correction for rounding.
#[tool(title = "Total", read_only, idempotent, open_world = false)]
fn calculate_total(args: Numbers) -> Result<Json<Total>> {
    let total = finite(statistics::sum(&args.numbers))?;
    Ok(Json(Total { total }))
}

/// Computes statistics of numbers: count, sum, mean, median, minimum, maximum, and the standard
/// deviation (of the whole population).
#[tool(title = "Statistics", read_only, idempotent, open_world = false)]
fn calculate_statistics(args: Numbers) -> Result<Json<Statistics>> {
    let Some(statistics) = Statistics::of(args.numbers) else {
        invalid!("`numbers` is empty: give at least one");
    };
    finite(statistics.sum)?;
    finite(statistics.standard_deviation)?;
    Ok(Json(statistics))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Expression {
    /// The expression, such as `2 * (3 + sqrt(16)) ^ 2`.
    #[schemars(length(min = 1, max = 10_000))]
    expression: String,
}

#[derive(Serialize, JsonSchema)]
struct Value {
    /// The value.
    value: f64,
}

/// Evaluates an arithmetic expression. It can contain:
///
/// - numbers such as `12`, `0.5` or `1e-3`, and the constants `pi` and `e`
/// - `+ - * / %` and `^` for powers, which binds tightest and is right-associative
/// - parentheses
/// - the functions `abs`, `sqrt`, `exp`, `ln`, `log10`, `sin`, `cos`, `tan` (of
///   radians), `round`, `floor` and `ceil` of one number, and `min` and `max`
///   of several, separated by commas
#[tool(title = "Calculator", read_only, idempotent, open_world = false)]
fn evaluate(args: Expression) -> Result<Json<Value>> {
    let value = expression::evaluate(&args.expression).map_err(Error::invalid_arguments)?;
    Ok(Json(Value {
        value: finite(value)?,
    }))
}

/// Rejects infinity and NaN, which JSON cannot represent.
fn finite(value: f64) -> Result<f64> {
    ensure!(
        value.is_finite(),
        "the result is not a number that JSON can say: it is too large, or does not exist, as \
         the root of a negative number"
    );
    Ok(value)
}

export!(
    calculate_sum,
    calculate_total,
    calculate_statistics,
    evaluate
);

#[cfg(test)]
mod tests {
    use super::*;
    use toolbay_plugin::{serde_json::json, test};

    #[test]
    fn adds_two_numbers() {
        let output =
            test::call::<calculate_sum>(json!({"a": 1, "b": 2.5}), &Context::test()).unwrap();
        assert_eq!(output.json(), Some(json!({"sum": 3.5})));
    }

    #[test]
    fn adds_up_a_list() {
        let output =
            test::call::<calculate_total>(json!({"numbers": [0.1, 0.2, 0.3]}), &Context::test())
                .unwrap();
        assert_eq!(output.json(), Some(json!({"total": 0.6})));
    }

    #[test]
    fn an_overflow_is_an_error() {
        assert!(
            calculate_sum(Summands {
                a: f64::MAX,
                b: f64::MAX
            })
            .is_err()
        );
        assert!(
            calculate_total(Numbers {
                numbers: vec![f64::MAX, f64::MAX]
            })
            .is_err()
        );
    }

    #[test]
    fn evaluates_from_json_to_json() {
        let arguments = json!({"expression": "2 * (3 + sqrt(16)) ^ 2"});
        let output = test::call::<evaluate>(arguments, &Context::test()).unwrap();
        assert_eq!(output.json(), Some(json!({"value": 98.0})));
    }

    #[test]
    fn a_typing_mistake_is_an_invalid_argument() {
        let arguments = json!({"expression": "2 +"});
        let error = test::call::<evaluate>(arguments, &Context::test()).unwrap_err();
        assert!(error.is_invalid_arguments());
    }

    #[test]
    fn what_does_not_exist_is_a_failure() {
        let arguments = json!({"expression": "sqrt(-1)"});
        let error = test::call::<evaluate>(arguments, &Context::test()).unwrap_err();
        assert!(!error.is_invalid_arguments());
    }
}
