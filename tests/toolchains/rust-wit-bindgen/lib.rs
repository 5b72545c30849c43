//! Functions of a WIT of its own, one of them async, with bindings of wit-bindgen.

use wasi::keyvalue::store;

wit_bindgen::generate!({ path: "texts.wit", world: "plugin", generate_all });

use exports::local::texts::texts::{Guest, Place};

struct Plugin;

export!(Plugin);

impl Guest for Plugin {
    async fn greet(name: String) -> Result<String, String> {
        wit_bindgen::yield_async().await;
        if name.is_empty() {
            Err("the name is empty".to_owned())
        } else {
            Ok(format!("Hello, {name}."))
        }
    }

    fn double(n: u64) -> u64 {
        n * 2
    }

    fn find(text: String, word: String) -> Vec<Place> {
        let lines = text.lines().zip(1..);
        let words =
            lines.flat_map(|(words, line)| words.split(' ').map(move |found| (line, found)));
        words
            .filter(|(_, found)| *found == word)
            .map(|(line, found)| Place {
                line,
                word: found.to_owned(),
            })
            .collect()
    }

    fn visits() -> Result<u64, String> {
        let refused = |error: store::Error| error.to_string();
        let bucket = store::open("").map_err(refused)?;
        let before = bucket.get("visits").map_err(refused)?.unwrap_or_default();
        let visits = u64::from(before.first().copied().unwrap_or_default()) + 1;
        bucket.set("visits", &[visits as u8]).map_err(refused)?;
        Ok(visits)
    }
}
