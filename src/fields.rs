//! Reads the fields of a protobuf message in place: the machines need one or two fields of a resource, and never decode
//! the rest.

/// Iterates over the fields of one message, as `(number, value)`. Ends after an [`Err`] at the first malformed byte.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

/// The value of a field, as far as the wire type determines it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Value<'a> {
    Varint(u64),
    /// A string, bytes, or an embedded message.
    Bytes(&'a [u8]),
    /// `fixed32` or `fixed64`; no machine reads these.
    Fixed,
}

/// The bytes are not a protobuf message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Malformed;

impl<'a> Fields<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// Returns whether no field is left.
    #[inline]
    pub(crate) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, Malformed> {
        // Most varints are one byte.
        if let Some((&byte, rest)) = self.rest.split_first().filter(|(byte, _)| **byte < 0x80) {
            self.rest = rest;
            return Ok(u64::from(byte));
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(Malformed)?;
            self.rest = rest;
            if shift == 63 && byte > 1 {
                break; // more than 64 bits
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    #[inline]
    fn take(&mut self, len: u64) -> Result<&'a [u8], Malformed> {
        let len = usize::try_from(len).map_err(|_| Malformed)?;
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Returns the next field if it is like most: bytes, with a key of one byte and a length of one byte.
    #[inline]
    fn short(&mut self) -> Option<(u32, Value<'a>)> {
        let [key @ 8..0x80, len @ 0..0x80, rest @ ..] = self.rest else { return None };
        if key & 7 != 2 {
            return None;
        }
        let (value, rest) = rest.split_at_checked(usize::from(*len))?;
        self.rest = rest;
        Some((u32::from(key >> 3), Value::Bytes(value)))
    }

    fn field(&mut self) -> Result<(u32, Value<'a>), Malformed> {
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).map_err(|_| Malformed)?;
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let len = self.varint()?;
                Value::Bytes(self.take(len)?)
            }
            5 => self.take(4).map(|_| Value::Fixed)?,
            _ => return Err(Malformed), // groups were deprecated before xDS existed
        };
        if number == 0 { Err(Malformed) } else { Ok((number, value)) }
    }
}

/// The number of a field, its value, and its bytes.
type Raw<'a> = (u32, Value<'a>, &'a [u8]);

impl<'a> Fields<'a> {
    /// Returns the next field and its bytes.
    pub(crate) fn next_raw(&mut self) -> Option<Result<Raw<'a>, Malformed>> {
        let before = self.rest;
        let field = self.next()?;
        let raw = &before[..before.len() - self.rest.len()];
        Some(field.map(|(number, value)| (number, value, raw)))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        if let Some(field) = self.short() {
            return Some(Ok(field));
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Returns the last value of string field `number`, or `""` if the field is absent (proto3's default).
pub(crate) fn string(message: &[u8], number: u32) -> Result<&str, Malformed> {
    core::str::from_utf8(bytes(message, number)?).map_err(|_| Malformed)
}

/// Like `string`, without the check for UTF-8.
pub(crate) fn bytes(message: &[u8], number: u32) -> Result<&[u8], Malformed> {
    let mut found: &[u8] = &[];
    for field in Fields::new(message) {
        match field? {
            (n, Value::Bytes(bytes)) if n == number => found = bytes,
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn fields_of_every_wire_type_are_read_up_to_the_first_malformed_byte() {
        let message = [
            0x08, 0x96, 0x01, // 1: varint 150
            0x11, 1, 2, 3, 4, 5, 6, 7, 8, // 2: fixed64
            0x1a, 2, b'h', b'i', // 3: bytes
            0x25, 1, 2, 3, 4, // 4: fixed32
            0x30, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1,    // 6: varint -1, as an int32 has it too
            0x2b, // 5: a group
            0x08, 0x01,
        ];
        assert_eq!(
            Fields::new(&message).collect::<Vec<_>>(),
            [
                Ok((1, Value::Varint(150))),
                Ok((2, Value::Fixed)),
                Ok((3, Value::Bytes(b"hi"))),
                Ok((4, Value::Fixed)),
                Ok((6, Value::Varint(u64::MAX))),
                Err(Malformed),
            ]
        );
    }

    #[test]
    fn a_string_field_given_twice_has_its_last_value() {
        assert_eq!(string(&[0x0a, 1, b'a', 0x0a, 1, b'b', 0x12, 1, b'c'], 1), Ok("b"));
        assert_eq!(string(&[0x12, 1, b'c'], 1), Ok(""));
        assert_eq!(string(&[], 1), Ok(""));
    }

    #[test]
    fn malformed_messages_are_refused() {
        for message in [
            &[0x0a][..],                                                  // no length
            &[0x0a, 5, b'a'],                                             // too short
            &[0x0a, 1, 0xff],                                             // not UTF-8
            &[0x02, 0],                                                   // field number 0
            &[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1], // a varint of 11 bytes
            &[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2],      // a varint of 65 bits
            &[0x11, 1, 2],                                                // a short fixed64
            &[0x0d, 1, 2],                                                // a short fixed32
            &[0x08],                                                      // no varint
        ] {
            assert_eq!(string(message, 1), Err(Malformed), "{message:?}");
        }
    }
}
