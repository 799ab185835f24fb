//! How everything is printed: colours and characters.

use clap::{Args as Group, ValueEnum};

/// How to print, whatever it is.
#[derive(Group, Clone, Copy)]
pub struct Display {
    /// Colours: on a terminal and without NO_COLOR, or as said here
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN", hide_possible_values = true, help_heading = super::EVERYWHERE)]
    pub color: Colour,
    /// Only ASCII characters
    #[arg(long, global = true, help_heading = super::EVERYWHERE)]
    pub ascii: bool,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Also in a pipe
    Always,
    /// Never
    Never,
}
