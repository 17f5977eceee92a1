//! Files that are almost like others.

use vti::random::Stream;

/// Words that readers look for, and numbers at the ends of their ranges.
const WORDS: [&[u8]; 28] = [
    b"\"",
    b"\n",
    b",",
    b";",
    b"\t",
    b"=",
    b"[",
    b"{",
    b"NaN",
    b"NA",
    b"inf",
    b"-1",
    b"0",
    b"1e308",
    b"1e-320",
    b"4294967296",
    b"18446744073709551615",
    b"-9223372036854775808",
    b"null",
    b"true",
    b"2024-02-29",
    b"\xef\xbb\xbf",
    b"\xff\xff\xff\xff",
    b"\x00\x00\x00\x00",
    b"\xff\xff\xff\x7f",
    b"\xe2\x86\x92",
    b"from,to\n",
    b"PAR1",
];

/// The longest file that is made.
const MAX_BYTES: usize = 1 << 15;

/// One of the files, changed in a few places.
pub(crate) fn mutated(files: &[&[u8]], stream: &mut Stream) -> Vec<u8> {
    let mut bytes = pick(files, stream).to_vec();
    for _ in 0..=stream.below(4) {
        change(&mut bytes, files, stream);
    }
    bytes.truncate(MAX_BYTES);
    bytes
}

fn pick<'a>(files: &[&'a [u8]], stream: &mut Stream) -> &'a [u8] {
    files.get(stream.below(files.len() as u64) as usize).copied().unwrap_or_default()
}

/// A place in a file of this length, its end included.
fn place(len: usize, stream: &mut Stream) -> usize {
    stream.below(len as u64 + 1) as usize
}

/// A piece of a file, short more often than long.
fn piece(len: usize, stream: &mut Stream) -> std::ops::Range<usize> {
    let start = place(len, stream);
    let most = (len - start).min(1 << stream.below(10));
    start..start + place(most, stream)
}

/// Flips, sets, cuts, doubles, moves or splices.
fn change(bytes: &mut Vec<u8>, files: &[&[u8]], stream: &mut Stream) {
    let at = place(bytes.len(), stream);
    match stream.below(7) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << stream.below(8);
            }
        }
        1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = stream.below(256) as u8;
            }
        }
        2 => drop(bytes.drain(piece(bytes.len(), stream))),
        3 => {
            let copy = bytes[piece(bytes.len(), stream)].to_vec();
            bytes.splice(at..at, copy);
        }
        4 => {
            let other = pick(files, stream);
            let copy = other[piece(other.len(), stream)].to_vec();
            bytes.splice(at..at, copy);
        }
        5 => {
            let word = pick(&WORDS, stream);
            bytes.splice(at..at, word.iter().copied());
        }
        _ => {
            let word = pick(&WORDS, stream);
            let end = (at + word.len()).min(bytes.len());
            bytes.splice(at..end, word.iter().copied());
        }
    }
}
