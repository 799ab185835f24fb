//! Ids that are derived from what they name. A repeated step derives the same id, so everything may run twice. No id is random.

use crate::names::{Context, ProjectName, SequenceName, StageName};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// RFC 4648 base32 in the order of its code points, so that encoded numbers sort like the numbers.
const ALPHABET: &[u8; 32] = b"234567abcdefghijklmnopqrstuvwxyz";

/// Encodes the low `5 * N` bits of a number, most significant first.
fn base32<const N: usize>(number: u64) -> String {
    (0..N).rev().map(|i| char::from(ALPHABET[((number.checked_shr(5 * i as u32).unwrap_or(0)) & 31) as usize])).collect()
}

fn unbase32(text: &str) -> Option<u64> {
    text.bytes().try_fold(0u64, |n, b| {
        let digit = ALPHABET.iter().position(|a| *a == b)?;
        n.checked_mul(32)?.checked_add(digit as u64)
    })
}

/// The first 64 bits of SHA-256 over the parts, each preceded by its length: `("a","bc")` and `("ab","c")` differ.
pub fn hash64(parts: &[&[u8]]) -> u64 {
    let mut sha = Sha256::new();
    for part in parts {
        sha.update((part.len() as u64).to_be_bytes());
        sha.update(part);
    }
    let digest = sha.finalize();
    let mut first = [0u8; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first)
}

/// SHA-256 of the bytes in lower-case hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// The id of a subject, which messages are addressed to (an execution, for example): 64 bits derived from its cause or name,
/// written as 13 characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubjectId(pub u64);

/// The id of one execution of a sequence.
pub type ExecutionId = SubjectId;

impl ExecutionId {
    /// The execution that a `.triggered` event from outside starts. The same event never starts a second execution.
    pub fn of_trigger(project: &ProjectName, context: &Context, source: &str, id: &str) -> Self {
        Self(hash64(&[b"trigger", project.as_str().as_bytes(), context.as_str().as_bytes(), source.as_bytes(), id.as_bytes()]))
    }
    /// The execution of a sequence that follows the end of another execution, or a domain event (by its
    /// [`ExecutionId::of_trigger`]).
    pub fn of_follow_up(parent: ExecutionId, cause: &str, stage: &StageName, sequence: &SequenceName) -> Self {
        Self(hash64(&[
            b"follow-up",
            &parent.0.to_be_bytes(),
            cause.as_bytes(),
            stage.as_str().as_bytes(),
            sequence.as_str().as_bytes(),
        ]))
    }
    /// Parses the 13 characters that [`std::fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == 13).then(|| unbase32(text).map(Self)).flatten()
    }
}

impl std::fmt::Display for SubjectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&base32::<13>(self.0))
    }
}

impl Serialize for SubjectId {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SubjectId {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not an execution id: 13 characters of base32"))
    }
}

/// A hash of the content of a transition record: 46 bits, as many as fit into the id of a task's trigger beside execution and
/// number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordHash(u64);

impl RecordHash {
    /// The hash of a record's canonical bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(hash64(&[b"record", bytes]) >> 18)
    }
    /// Parses the 10 characters that [`std::fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == 10).then(|| unbase32(text)).flatten().filter(|n| *n < 1 << 46).map(Self)
    }
}

impl std::fmt::Display for RecordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&base32::<10>(self.0))
    }
}

/// The address of a transition record, which is also the id of the task trigger that the record publishes. So the `triggeredid` of
/// an answer leads to the execution and the record without a look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId {
    /// The subject that the record belongs to.
    pub subject: SubjectId,
    /// The number of the record, below 4096. For an execution: how many tasks were complete when the record was written, or
    /// [`RecordId::END`].
    pub number: u16,
    /// The hash of the record's content.
    pub hash: RecordHash,
}

impl RecordId {
    /// The task number of the record that ends an execution; sequences have at most 200 tasks.
    pub const END: u16 = 999;

    /// The address as the id of an event: a UUIDv8 of 64 bits execution, 12 bits number and 46 bits content.
    pub fn uuid(&self) -> Uuid {
        let mut bytes = [0u8; 16];
        let x = self.subject.0.to_be_bytes();
        bytes[..6].copy_from_slice(&x[..6]);
        bytes[6..8].copy_from_slice(&(self.number & 0x0fff).to_be_bytes());
        let low = (u64::from(x[6]) << 8 | u64::from(x[7])) << 46 | self.hash.0;
        bytes[8..].copy_from_slice(&low.to_be_bytes());
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    }

    /// Parses the id of an event. `None`: it is not the address of a record.
    pub fn from_uuid(id: &str) -> Option<Self> {
        let id = Uuid::parse_str(id).ok().filter(|id| id.get_version_num() == 8)?;
        let bytes = id.as_bytes();
        let number = u16::from_be_bytes([bytes[6] & 0x0f, bytes[7]]);
        let mut low = [0u8; 8];
        low.copy_from_slice(&bytes[8..]);
        let low = u64::from_be_bytes(low) & ((1 << 62) - 1);
        let mut x = [0u8; 8];
        x[..6].copy_from_slice(&bytes[..6]);
        x[6] = (low >> 54) as u8;
        x[7] = (low >> 46) as u8;
        let hash = RecordHash(low & ((1 << 46) - 1));
        Some(Self { subject: SubjectId(u64::from_be_bytes(x)), number, hash })
    }
}

/// The id of an event that is not a task trigger, derived from the execution and the kind of event (`"started"`, `"finished"`, …).
pub fn event_id(execution: ExecutionId, what: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("keelway/{execution}/{what}").as_bytes())
}

/// The context of an event that names none. The same event always gets the same context.
pub fn context_of(source: &str, id: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("keelway/context/{}/{source}/{id}", source.len()).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_trigger_id_leads_back_to_its_record(x: u64, task in 0u16..1000, bytes: Vec<u8>) {
            let record = RecordId { subject: SubjectId(x), number: task, hash: RecordHash::of(&bytes) };
            let id = record.uuid();
            prop_assert_eq!(id.get_version_num(), 8);
            prop_assert_eq!(RecordId::from_uuid(&id.to_string()), Some(record));
            prop_assert_eq!(RecordHash::parse(&record.hash.to_string()), Some(record.hash));
        }

        #[test]
        fn execution_ids_sort_like_their_numbers(a: u64, b: u64) {
            let (x, y) = (SubjectId(a), SubjectId(b));
            prop_assert_eq!(x.to_string().cmp(&y.to_string()), a.cmp(&b));
            prop_assert_eq!(ExecutionId::parse(&x.to_string()), Some(x));
        }
    }

    #[test]
    fn other_uuids_are_not_ours() {
        assert_eq!(RecordId::from_uuid("0b9e7a44-1f7e-4abc-8123-5d2a5ef11ecf"), None);
        assert_eq!(RecordId::from_uuid("unknown-triggered-id"), None);
    }

    #[test]
    fn a_hash_has_46_bits() {
        let hash = RecordHash((1 << 46) - 1);
        assert_eq!(RecordHash::parse(&hash.to_string()), Some(hash));
        assert_eq!(RecordHash::parse(&RecordHash(1 << 46).to_string()), None);
    }
}
