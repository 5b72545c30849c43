//! Reads HTTP requests, for servers that tests implement.

use std::io::{self, BufRead};

/// Reads an HTTP/1.1 request: the head without the empty line, and the body, whose length the head
/// declares. Returns `None` if the connection ended before a request.
///
/// # Errors
///
/// Fails if reading fails or the connection ends within the body.
pub fn read_request(reader: &mut impl BufRead) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value
                .trim()
                .parse()
                .map_err(|_| io::Error::other(format!("not a length: {line}")))?;
        }
        if line == "\r\n" {
            break;
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some((head, body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_one_after_the_other() {
        let mut text: &[u8] =
            b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nhiGET /a HTTP/1.1\r\n\r\n";
        let (head, body) = read_request(&mut text).unwrap().unwrap();
        assert_eq!(
            (head.as_str(), body.as_slice()),
            ("POST / HTTP/1.1\r\nContent-Length: 2\r\n", &b"hi"[..])
        );
        assert_eq!(
            read_request(&mut text).unwrap().unwrap(),
            ("GET /a HTTP/1.1\r\n".to_owned(), Vec::new())
        );
        assert_eq!(read_request(&mut text).unwrap(), None);
        assert!(read_request(&mut &b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nhi"[..]).is_err());
        assert!(
            read_request(&mut &b"POST / HTTP/1.1\r\nContent-Length: two\r\n\r\nhi"[..]).is_err()
        );
    }
}
