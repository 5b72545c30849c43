//! Says how many bytes it was given, and what it was given. Counts its visits in a folder.

use std::fs;
use std::io::Read as _;

fn main() {
    let mut arguments = String::new();
    std::io::stdin().read_to_string(&mut arguments).unwrap();
    if arguments.contains("fail") {
        eprintln!("asked to fail");
        std::process::exit(3);
    }
    if arguments.contains("visit") {
        let before: u64 =
            fs::read_to_string("/data/visits").map_or(0, |text| text.parse().unwrap());
        fs::write("/data/visits", (before + 1).to_string()).unwrap();
        println!("{{\"visits\":{}}}", before + 1);
        return;
    }
    println!(
        "{{\"bytes\":{},\"arguments\":{arguments}}}",
        arguments.len()
    );
}
