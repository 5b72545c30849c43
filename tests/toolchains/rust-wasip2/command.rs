//! Says how many bytes it was given, and what it was given.

use std::io::Read as _;

fn main() {
    let mut arguments = String::new();
    std::io::stdin().read_to_string(&mut arguments).unwrap();
    if arguments.contains("fail") {
        eprintln!("asked to fail");
        std::process::exit(3);
    }
    println!("{{\"bytes\":{},\"arguments\":{arguments}}}", arguments.len());
}
