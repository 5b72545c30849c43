//! Says how many bytes it was given, and what it was given. Counts its visits in a folder, and
//! reads from a socket.

use std::fs;
use std::io::Read as _;
use std::io::Write as _;
use std::net::TcpStream;

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
    if let Some((_, rest)) = arguments.split_once("\"http://") {
        let (host, path) = rest.trim_end_matches(['"', '}']).split_once('/').unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET /{path} HTTP/1.0\r\nHost: {host}\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        print!("{}", response.split_once("\r\n\r\n").unwrap().1);
        return;
    }
    println!(
        "{{\"bytes\":{},\"arguments\":{arguments}}}",
        arguments.len()
    );
}
