//! Searches of texts. They are here because the world is compiled with optimisation: some tests look for dozens of words in each of
//! tens of thousands of answers.

/// Whether a text contains a word.
// Inlined, it would be compiled as the test is.
#[inline(never)]
pub fn holds(text: &str, word: &str) -> bool {
    text.contains(word)
}
