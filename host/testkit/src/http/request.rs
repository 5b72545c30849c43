//! Reads HTTP requests, for servers that tests implement.

use std::io::{self, BufRead};

/// Reads an HTTP/1.1 request: the head without the empty line, and the body, whose length the head
/// declares or which is chunked. Returns `None` if the connection ended before a request.
///
/// # Errors
///
/// Fails if reading fails, the connection ends within the body, or a length is not a number.
pub fn read_request(reader: &mut impl BufRead) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut head = String::new();
    let mut length = 0;
    let mut is_chunked = false;
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
        if line.to_ascii_lowercase().starts_with("transfer-encoding:") {
            is_chunked = true;
        }
        if line == "\r\n" {
            break;
        }
        head += &line;
    }
    if is_chunked {
        return Ok(Some((head, read_chunks(reader)?)));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some((head, body)))
}

/// Reads a chunked body without trailers.
fn read_chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim(), 16)
            .map_err(|_| io::Error::other(format!("not the length of a chunk: {line}")))?;
        let mut chunk = vec![0; length + 2];
        reader.read_exact(&mut chunk)?;
        if length == 0 {
            return Ok(body);
        }
        chunk.truncate(length);
        body.append(&mut chunk);
    }
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

    #[test]
    fn chunks_are_joined() {
        let mut text: &[u8] =
            b"PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\na\r\n0123456789\r\n1\r\n!\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n";
        assert_eq!(
            read_request(&mut text).unwrap().unwrap().1,
            b"0123456789!".to_vec()
        );
        assert_eq!(
            read_request(&mut text).unwrap().unwrap().0,
            "GET / HTTP/1.1\r\n"
        );
        let cut = b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc";
        assert!(read_request(&mut &cut[..]).is_err());
        let odd = b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
        assert!(read_request(&mut &odd[..]).is_err());
    }
}
