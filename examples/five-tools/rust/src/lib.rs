use form_urlencoded::Serializer;
use serde::{Deserialize, Serialize};
use toolbay_plugin::prelude::*;
use toolbay_plugin::{http, keyvalue};

const SIZE: u32 = 16;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct City {
    /// The city.
    city: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Weather {
    city: String,
    /// In °C.
    temperature: f64,
}

/// Returns the temperature in a city.
#[tool(read_only)]
fn get_weather(args: City, ctx: &Context) -> Result<Json<Weather>> {
    let service = ctx.config("service").context("the service is not configured")?;
    let query = Serializer::new(String::new()).append_pair("city", &args.city).finish();
    let response = http::get(&format!("{service}/weather?{query}")).send()?;
    Ok(Json(response.error_for_status()?.json()?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Memory {
    /// The name of the value.
    key: String,
    /// The value.
    value: String,
}

/// Remembers a value, and returns the one that it replaces.
#[tool]
fn remember(args: Memory) -> Result<String> {
    let memory = keyvalue::open("memory")?;
    let before = memory.get_text(&args.key)?;
    memory.set(&args.key, &args.value)?;
    Ok(before.unwrap_or_else(|| "nothing".to_owned()))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Files {
    /// The names of the files.
    files: Vec<String>,
}

/// Indexes files, and reports its progress.
#[tool(read_only)]
fn index_files(args: Files, ctx: &Context) -> String {
    let total = args.files.len();
    for (done, file) in (1_u32..).zip(args.files) {
        ctx.progress_message(f64::from(done), total as f64, file);
    }
    format!("{total} files are indexed")
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    /// Really delete it?
    yes: bool,
}

/// Deletes everything, if the user agrees.
#[tool(destructive)]
fn delete_all(ctx: &Context) -> Result<&'static str> {
    match ctx.ask("sure", Form::<Confirmation>::new("This deletes everything."))? {
        Elicited::Accepted(Confirmation { yes: true }) => Ok("deleted"),
        _ => Ok("nothing was deleted"),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Color {
    /// The level of red.
    red: u8,
    /// The level of green.
    green: u8,
    /// The level of blue.
    blue: u8,
}

/// Draws a square of one color.
#[tool(read_only)]
fn draw_swatch(Color { red, green, blue }: Color) -> Result<Image> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, SIZE, SIZE);
    encoder.set_color(png::ColorType::Rgb);
    let pixels = [red, green, blue].repeat((SIZE * SIZE) as usize);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(Image::png(file))
}

export!(get_weather, remember, index_files, delete_all, draw_swatch);
