//! Splits bytes into lines, without any IO.
//!
//! Lines are cut at the byte `\n` before anything is decoded. So a chunk may end in the middle of a line or of a character. A line and a
//! whole answer have limits, because the other side decides what it sends, and this process holds many turns in memory.

/// Limits on what the other side may send.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub line_bytes: usize,
    pub total_bytes: usize,
}

/// Error: the other side exceeded a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooMuch {
    #[error("a line of more than {0} bytes")]
    Line(usize),
    #[error("more than {0} bytes")]
    Total(usize),
}

/// A stream that is cut into lines.
#[derive(Debug)]
pub(super) struct Lines {
    limits: Limits,
    buffer: Vec<u8>,
    /// Position after the last line that was handed out.
    start: usize,
    /// No line end lies between `start` and here, so a long line is searched once and not once per chunk.
    searched: usize,
    n_bytes: usize,
}

impl Lines {
    pub(super) fn within(limits: Limits) -> Self {
        Self { limits, buffer: Vec::new(), start: 0, searched: 0, n_bytes: 0 }
    }

    /// Adds bytes. All their lines have to be fetched before the next push: then the buffer holds one line and one push at most.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), TooMuch> {
        self.n_bytes = self.n_bytes.saturating_add(bytes.len());
        if self.n_bytes > self.limits.total_bytes {
            return Err(TooMuch::Total(self.limits.total_bytes));
        }
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns the next complete line that is not blank.
    pub(super) fn next_line(&mut self) -> Result<Option<&[u8]>, TooMuch> {
        loop {
            let found = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
            let end = found.map_or(self.buffer.len(), |at| self.searched + at);
            if end - self.start > self.limits.line_bytes {
                return Err(TooMuch::Line(self.limits.line_bytes));
            }
            if found.is_none() {
                self.searched = end;
                return Ok(None);
            }
            let line = self.start..end;
            self.start = end + 1;
            self.searched = self.start;
            if !self.buffer[line.clone()].trim_ascii().is_empty() {
                return Ok(Some(self.buffer[line].trim_ascii()));
            }
        }
    }

    /// Returns the rest when the stream has ended: a last line without its line end, or part of a line.
    pub(super) fn rest(&self) -> &[u8] {
        self.buffer[self.start..].trim_ascii()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Limits = Limits { line_bytes: 64, total_bytes: 4096 };

    /// Xorshift: the same numbers on every run.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, n: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            usize::try_from(self.0 % n as u64).unwrap()
        }

        fn line(&mut self) -> String {
            let letters = ['a', '"', '\\', '{', 'ß', '語', '🎼', '\u{301}', '\u{2028}'];
            (0..self.below(14)).map(|_| letters[self.below(letters.len())]).collect()
        }
    }

    fn read(lines: &mut Lines) -> Vec<String> {
        let mut read = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            read.push(String::from_utf8(line.to_vec()).unwrap());
        }
        read
    }

    #[test]
    fn chunk_boundaries_do_not_matter() {
        for seed in 1..2_000 {
            let mut dice = Dice(seed);
            let sent: Vec<String> = (0..dice.below(12)).map(|_| dice.line()).collect();
            let end = ["\n", "\r\n", "\n\n"][dice.below(3)];
            let text: String = sent.iter().map(|line| format!("{line}{end}")).collect();
            let mut rest = text.as_bytes();
            let (mut lines, mut came) = (Lines::within(SMALL), Vec::new());
            while !rest.is_empty() {
                let (chunk, later) = rest.split_at(1 + dice.below(rest.len()));
                lines.push(chunk).unwrap();
                came.extend(read(&mut lines));
                rest = later;
            }
            let expected: Vec<String> = sent.into_iter().filter(|line| !line.is_empty()).collect();
            assert_eq!(came, expected, "seed {seed}");
            assert_eq!(lines.rest(), b"");
        }
    }

    #[test]
    fn a_last_line_may_lack_its_newline() {
        let mut lines = Lines::within(SMALL);
        lines.push(b"{}\n{\"a\":1}").unwrap();
        assert_eq!(read(&mut lines), ["{}"]);
        assert_eq!(lines.rest(), b"{\"a\":1}");
    }

    #[test]
    fn a_line_over_the_limit_is_an_error_with_or_without_an_end() {
        for chunk in [vec![b'x'; 65], [vec![b'x'; 65], vec![b'\n']].concat()] {
            let mut lines = Lines::within(SMALL);
            lines.push(&chunk).unwrap();
            assert_eq!(lines.next_line(), Err(TooMuch::Line(64)));
        }
        let mut lines = Lines::within(SMALL);
        lines.push(&[vec![b'x'; 64], vec![b'\n']].concat()).unwrap();
        assert_eq!(lines.next_line().unwrap().unwrap().len(), 64);
    }

    #[test]
    fn many_short_lines_are_limited_too_and_leave_nothing_buffered() {
        let mut lines = Lines::within(SMALL);
        let mut n_pushed = 0;
        let result = loop {
            match lines.push(b"0123456789\n") {
                Err(error) => break error,
                Ok(()) => n_pushed += 11,
            }
            assert_eq!(read(&mut lines).len(), 1);
            assert!(lines.buffer.capacity() <= 64);
        };
        assert_eq!(result, TooMuch::Total(4096));
        assert!(n_pushed <= 4096);
    }
}
