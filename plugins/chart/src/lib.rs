//! Tools that draw charts.

mod axis;
mod canvas;
mod font;
mod group;
mod plot;
mod series;

use group::{Grouped, Measure};
use plot::Style;
use serde::{Deserialize, Serialize};
use series::{Series, Summary};
use toolbay_plugin::prelude::*;
use toolbay_plugin::{ResourceDefinition, View};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Bars {
    /// The text above the chart.
    #[serde(default)]
    #[schemars(length(max = 200))]
    title: String,
    /// The text below each bar, in the order of `values`.
    #[schemars(length(min = 1, max = 1000))]
    labels: Vec<String>,
    /// The value of each bar. A bar with a negative value points down.
    #[schemars(length(min = 1, max = 1000))]
    values: Vec<f64>,
    #[serde(default)]
    size: Size,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Line {
    /// The text above the chart.
    #[serde(default)]
    #[schemars(length(max = 200))]
    title: String,
    /// The text below each point, in the order of `values`, such as dates. If omitted, the points
    /// are numbered from 1.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    labels: Vec<String>,
    /// The value of each point, from left to right.
    #[schemars(length(min = 1, max = 1000))]
    values: Vec<f64>,
    #[serde(default)]
    size: Size,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Groups {
    /// The name of each value, in the order of `values`.
    #[schemars(length(min = 1, max = 1000))]
    labels: Vec<String>,
    /// The values.
    #[schemars(length(min = 1, max = 1000))]
    values: Vec<f64>,
    /// How many groups to make at most. Neighbours are grouped.
    #[schemars(range(min = 1, max = 1000))]
    #[serde(rename = "groups")]
    most: usize,
    /// What stands for a group.
    #[serde(default)]
    measure: Measure,
}

/// The size of the image.
#[derive(Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Size {
    /// 480 by 300 pixels.
    Small,
    /// 800 by 450 pixels.
    #[default]
    Medium,
    /// 1280 by 720 pixels.
    Large,
}

impl Size {
    fn pixels(self) -> (usize, usize) {
        match self {
            Self::Small => (480, 300),
            Self::Medium => (800, 450),
            Self::Large => (1280, 720),
        }
    }
}

/// Draws a bar chart to compare named values, such as sales by region.
#[tool(
    title = "Bar chart",
    read_only,
    idempotent,
    open_world = false,
    view = "ui://chart/view"
)]
fn bar_chart(args: Bars) -> Result<(Json<Summary>, Image)> {
    let series = Series::new(args.labels, args.values)?;
    draw(&args.title, &series, Style::Bars, args.size)
}

/// Draws a line chart to show how a value changes along an axis, such as temperature over time.
#[tool(
    title = "Line chart",
    read_only,
    idempotent,
    open_world = false,
    view = "ui://chart/view"
)]
fn line_chart(args: Line) -> Result<(Json<Summary>, Image)> {
    let series = if args.labels.is_empty() {
        Series::numbered(args.values)?
    } else {
        Series::new(args.labels, args.values)?
    };
    draw(&args.title, &series, Style::Line, args.size)
}

fn draw(title: &str, series: &Series, style: Style, size: Size) -> Result<(Json<Summary>, Image)> {
    let canvas = plot::draw(title, series, style, size.pixels());
    Ok((Json(series.summary()), Image::png(canvas.png()?)))
}

/// Joins neighbouring values into a few groups. The chart's view calls it when its user wants fewer
/// bars or points.
#[tool(
    title = "Group values",
    read_only,
    idempotent,
    open_world = false,
    app_only
)]
fn group_values(args: Groups) -> Result<Json<Grouped>> {
    let series = Series::new(args.labels, args.values)?;
    Ok(Json(group::group(&series, args.most, args.measure)))
}

/// The chart as a page: bars or a line, the value under the pointer, and fewer groups.
#[resource("ui://chart/view", title = "Chart", define = without_border)]
fn view() -> &'static str {
    include_str!("view.html")
}

fn without_border(definition: ResourceDefinition) -> ResourceDefinition {
    definition.view(View::new().border(false))
}

export!(bar_chart, line_chart, group_values, view);

#[cfg(test)]
mod tests {
    use super::*;
    use toolbay_plugin::serde_json::{Value, json};
    use toolbay_plugin::{Tool, test};

    fn call<T: Tool>(arguments: Value) -> Result<Output> {
        test::call::<T>(arguments, &Context::test())
    }

    #[test]
    fn a_chart_is_a_picture_and_a_summary() {
        let arguments = json!({"title": "T", "labels": ["a", "b"], "values": [1, -3]});
        let output = call::<bar_chart>(arguments).unwrap();
        assert_eq!(
            output.json().unwrap(),
            json!({
                "count": 2,
                "min": {"label": "b", "value": -3.0},
                "max": {"label": "a", "value": 1.0},
                "mean": -1.0
            })
        );
        let [picture] = output.contents() else {
            panic!("{output:?}");
        };
        assert_eq!(picture.mime_type(), Some("image/png"));
    }

    #[test]
    fn points_are_numbered_without_labels() {
        let output = call::<line_chart>(json!({"values": [2, 5, 3]})).unwrap();
        assert_eq!(output.json().unwrap()["max"]["label"], "2");
    }

    #[test]
    fn a_view_asks_for_nothing_from_elsewhere() {
        let page = view();
        assert!(page.starts_with("<!doctype html>"), "a whole document");
        for elsewhere in ["http://", "https://", "//cdn", "@import", "src=", "href="] {
            // The SVG namespace is not a network address.
            let page = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!page.contains(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn values_are_grouped_by_a_tool() {
        let arguments =
            json!({"labels": ["a", "b", "c"], "values": [1, 3, 8], "groups": 2, "measure": "sum"});
        let output = call::<group_values>(arguments).unwrap();
        assert_eq!(
            output.json().unwrap(),
            json!({"labels": ["a – b", "c"], "values": [4.0, 8.0]})
        );
    }

    #[test]
    fn labels_and_values_must_match() {
        let error = call::<bar_chart>(json!({"labels": ["a"], "values": [1, 2]})).unwrap_err();
        assert_eq!(error.message(), "2 `values` need as many `labels`, not 1");
    }

    #[test]
    fn every_size_is_what_it_says() {
        for (size, width, height) in [("small", 480, 300), ("large", 1280, 720)] {
            let output = call::<line_chart>(json!({"values": [1, 2], "size": size})).unwrap();
            let file = output.contents()[0].as_bytes().unwrap().to_vec();
            let reader = png::Decoder::new(std::io::Cursor::new(file))
                .read_info()
                .unwrap();
            assert_eq!((reader.info().width, reader.info().height), (width, height));
        }
    }
}
