//! `${…}`.

use std::rc::Rc;

use super::reader::{Parsed, Parser, begins_name};
use super::tree::{Fetch, Operation, Parameter, Part};
use super::word::Stop;

impl Parser<'_> {
    /// Reads a parameter expansion; the cursor is behind `${`.
    pub(super) fn braces(&mut self, quoted: bool) -> Parsed<Part> {
        if matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'|')) {
            if self.peek() == Some(b'|') {
                self.bump()?;
            }
            return self.function_substitution(quoted);
        }
        let mut fetch = self.fetch()?;
        let name = self.parameter_name()?;
        let subscript = self.subscript()?;
        if fetch == Fetch::Indirect && name.is_empty() {
            return Err(self.failure("a parameter has no name"));
        }
        let operation = self.operation(quoted, &mut fetch)?;
        if !self.take("}")? {
            return Err(self.failure("a `${` is not closed"));
        }
        let parameter = Parameter {
            name,
            subscript,
            fetch,
            operation,
        };
        Ok(Part::Parameter {
            parameter: Rc::new(parameter),
            quoted,
        })
    }

    /// Reads the `#` or `!` that changes what is fetched.
    fn fetch(&mut self) -> Parsed<Fetch> {
        let fetch = match self.peek() {
            Some(b'#') => Fetch::Length,
            Some(b'!') => Fetch::Indirect,
            _ => return Ok(Fetch::Value),
        };
        let next = self.peek_second();
        let named = next.is_some_and(|next| begins_name(next) || next.is_ascii_digit());
        let special = matches!(next, Some(b'@' | b'*'))
            || (fetch == Fetch::Length && matches!(next, Some(b'?' | b'!' | b'$')));
        if named || special {
            self.bump()?;
            return Ok(fetch);
        }
        Ok(Fetch::Value)
    }

    fn parameter_name(&mut self) -> Parsed<String> {
        match self.peek() {
            Some(byte) if begins_name(byte) || byte.is_ascii_digit() => self.name(),
            Some(b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => {
                let mut name = String::new();
                self.character(&mut name)?;
                Ok(name)
            }
            _ => Err(self.failure("a parameter has no name")),
        }
    }

    /// Reads `[…]`.
    pub(super) fn subscript(&mut self) -> Parsed<Option<Vec<Part>>> {
        if !self.take("[")? {
            return Ok(None);
        }
        let parts = self.parts(Stop::Bracket, false)?;
        if !self.take("]")? {
            return Err(self.failure("a subscript is not closed"));
        }
        Ok(Some(parts))
    }

    fn operation(&mut self, quoted: bool, fetch: &mut Fetch) -> Parsed<Operation> {
        match self.peek() {
            Some(b'}') => Ok(Operation::None),
            Some(b':') => self.after_colon(quoted),
            Some(sign @ (b'-' | b'=' | b'?' | b'+')) => self.fallback(sign, quoted),
            Some(sign @ (b'#' | b'%')) => self.trim(sign),
            Some(b'/') => self.replace(),
            Some(b'*' | b'@') if *fetch == Fetch::Indirect && self.peek_second() == Some(b'}') => {
                self.bump()?;
                Ok(Operation::Names)
            }
            Some(b'^' | b',' | b'@' | b'~') => {
                self.bump()?;
                Ok(Operation::Other(self.parts(Stop::Brace, false)?))
            }
            _ => Err(self.failure("a `${` has an unknown form")),
        }
    }

    fn after_colon(&mut self, quoted: bool) -> Parsed<Operation> {
        self.bump()?;
        if let Some(sign @ (b'-' | b'=' | b'?' | b'+')) = self.peek() {
            return self.fallback(sign, quoted);
        }
        let from = self.parts(Stop::BraceOrColon, true)?;
        let length = if self.take(":")? {
            Some(self.parts(Stop::Brace, true)?)
        } else {
            None
        };
        Ok(Operation::Slice { from, length })
    }

    /// Inside double quotes single quotes are plain characters here, as in bash.
    fn fallback(&mut self, sign: u8, quoted: bool) -> Parsed<Operation> {
        self.bump()?;
        let word = self.parts(Stop::Brace, quoted)?;
        Ok(Operation::Fallback {
            sign: char::from(sign),
            word,
        })
    }

    fn trim(&mut self, sign: u8) -> Parsed<Operation> {
        self.bump()?;
        let longest = self.peek() == Some(sign);
        if longest {
            self.bump()?;
        }
        let pattern = self.parts(Stop::Brace, false)?;
        Ok(if sign == b'#' {
            Operation::TrimStart { pattern, longest }
        } else {
            Operation::TrimEnd { pattern, longest }
        })
    }

    fn replace(&mut self) -> Parsed<Operation> {
        self.bump()?;
        let all = self.peek() == Some(b'/');
        if all {
            self.bump()?;
        }
        let pattern = self.parts(Stop::BraceOrSlash, false)?;
        let with = if self.take("/")? {
            self.parts(Stop::Brace, false)?
        } else {
            Vec::new()
        };
        Ok(Operation::Replace { pattern, with, all })
    }
}
