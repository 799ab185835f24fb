//! Conditions of Argo Rollouts as criteria: `result[0] >= 0.95`, `!isNaN(result) && result <= 5`.

/// A condition in disjunctive form: one of the entries holds if all of its criteria do, as `pass` and `warning` have it.
pub type Entries = Vec<Vec<String>>;

/// The most entries that a condition becomes.
const MOST: usize = 16;
/// The deepest that parentheses and negations may nest.
const DEEPEST: usize = 32;

/// A condition as it is written.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// Any of them.
    Or(Vec<Condition>),
    /// All of them.
    And(Vec<Condition>),
    Not(Box<Condition>),
    /// The result, compared with a number.
    Compare(Operator, String),
    /// There is no number: `isNaN(result)`, `len(result) == 0`, `result == nil`.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Less,
    LessOrEqual,
    Equal,
    Different,
    GreaterOrEqual,
    Greater,
}

use Operator::{Different, Equal, Greater, GreaterOrEqual, Less, LessOrEqual};

impl Operator {
    const SIGNS: [(&str, Self); 6] =
        [("<=", LessOrEqual), (">=", GreaterOrEqual), ("==", Equal), ("!=", Different), ("<", Less), (">", Greater)];

    fn opposite(self) -> Self {
        match self {
            Less => GreaterOrEqual,
            LessOrEqual => Greater,
            Equal => Different,
            Different => Equal,
            GreaterOrEqual => Less,
            Greater => LessOrEqual,
        }
    }

    /// With its sides exchanged.
    fn turned(self) -> Self {
        match self {
            Less => Greater,
            LessOrEqual => GreaterOrEqual,
            GreaterOrEqual => LessOrEqual,
            Greater => Less,
            same => same,
        }
    }
}

impl Condition {
    /// Reads a condition.
    ///
    /// # Errors
    /// What in it is no comparison of one number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { rest: text.trim(), depth: 0 };
        let condition = parser.any()?;
        match parser.rest.is_empty() {
            true => Ok(condition),
            false => Err(parser.unread()),
        }
    }

    /// The condition that holds where this one does not.
    pub fn opposite(self) -> Self {
        Self::Not(Box::new(self))
    }

    /// The entries that hold where the condition does.
    ///
    /// # Errors
    /// What objectives cannot say.
    pub fn entries(&self) -> Result<Entries, String> {
        let mut entries = vec![];
        for all in self.disjunction(false)? {
            if all.contains(&Part::Nothing) {
                return Err(
                    "holds where there is no number, and an objective fails then: leave this part out, and have the query \
                            return a number always, with `or vector(0)` in PromQL or `FILL(m, 0)` in metric math"
                        .into(),
                );
            }
            let criteria: Vec<String> = all.into_iter().filter_map(Part::criterion).collect();
            if criteria.is_empty() {
                return Err("holds for every number: leave it out, which makes an objective for information".into());
            }
            entries.push(criteria);
        }
        Ok(entries)
    }

    fn disjunction(&self, is_negated: bool) -> Result<Vec<Vec<Part>>, String> {
        let found = match (self, is_negated) {
            (Self::Not(of), _) => of.disjunction(!is_negated)?,
            (Self::Or(of), false) | (Self::And(of), true) => {
                let each: Result<Vec<_>, _> = of.iter().map(|one| one.disjunction(is_negated)).collect();
                each?.concat()
            }
            (Self::Or(of), true) | (Self::And(of), false) => {
                let mut all: Vec<Vec<Part>> = vec![vec![]];
                for one in of {
                    let one = one.disjunction(is_negated)?;
                    all = all.iter().flat_map(|before| one.iter().map(move |next| [&before[..], next].concat())).collect();
                    few(&all)?;
                }
                all
            }
            (Self::Nothing, false) => vec![vec![Part::Nothing]],
            (Self::Nothing, true) => vec![vec![Part::Something]],
            (Self::Compare(operator, number), _) => {
                let part = |sign| vec![Part::Criterion(format!("{sign}{number}"))];
                match if is_negated { operator.opposite() } else { *operator } {
                    Less => vec![part("<")],
                    LessOrEqual => vec![part("<=")],
                    Equal => vec![part("=")],
                    Different => vec![part("<"), part(">")],
                    GreaterOrEqual => vec![part(">=")],
                    Greater => vec![part(">")],
                }
            }
        };
        few(&found)?;
        Ok(found)
    }
}

fn few(all: &[Vec<Part>]) -> Result<(), String> {
    match all.len() > MOST {
        true => Err(format!("has more than {MOST} alternatives: write a simpler one")),
        false => Ok(()),
    }
}

/// What must hold, among others.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    Criterion(String),
    Nothing,
    /// There is a number, as every criterion has it.
    Something,
}

impl Part {
    fn criterion(self) -> Option<String> {
        if let Self::Criterion(text) = self { Some(text) } else { None }
    }
}

/// A side of a comparison.
enum Side {
    Result,
    Length,
    Number(String),
    Nil,
}

struct Parser<'t> {
    rest: &'t str,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn any(&mut self) -> Result<Condition, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("nests too deeply: write a simpler one".into());
        }
        let mut any = vec![self.all()?];
        while self.take("||") || self.word("or") {
            any.push(self.all()?);
        }
        self.depth -= 1;
        Ok(if any.len() == 1 { any.remove(0) } else { Condition::Or(any) })
    }

    fn all(&mut self) -> Result<Condition, String> {
        let mut all = vec![self.one()?];
        while self.take("&&") || self.word("and") {
            all.push(self.one()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Condition::And(all) })
    }

    fn one(&mut self) -> Result<Condition, String> {
        if !self.rest.starts_with("!=") && self.take("!") || self.word("not") {
            return self.nested(|parser| parser.one().map(Condition::opposite));
        }
        if self.take("(") {
            let condition = self.any()?;
            return self.end(")").map(|()| condition);
        }
        for name in ["isNaN", "isInf", "isNil"] {
            if self.call(name) {
                self.result()?;
                return self.end(")").map(|()| Condition::Nothing);
            }
        }
        if self.call("all") || self.call("any") {
            return self.each();
        }
        self.comparison()
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("nests too deeply: write a simpler one".into());
        }
        let found = read(self)?;
        self.depth -= 1;
        Ok(found)
    }

    /// `all(result[0].Values, {# <= 0.01})`: of the one value that an indicator has, `all` and `any` say the same.
    fn each(&mut self) -> Result<Condition, String> {
        self.result()?;
        self.end(",")?;
        let in_braces = self.take("{");
        let condition = self.any()?;
        if in_braces {
            self.end("}")?;
        }
        self.end(")").map(|()| condition)
    }

    fn comparison(&mut self) -> Result<Condition, String> {
        let before = self.rest;
        let left = self.side()?;
        let sign = Operator::SIGNS.iter().find(|(sign, _)| self.take(sign));
        let Some((_, operator)) = sign else { return Err(other(before)) };
        let right = self.side()?;
        match (left, *operator, right) {
            (Side::Result, operator, Side::Number(number)) => compare(operator, number),
            (Side::Number(number), operator, Side::Result) => compare(operator.turned(), number),
            (Side::Result, Equal, Side::Nil) => Ok(Condition::Nothing),
            (Side::Result, Different, Side::Nil) => Ok(Condition::Nothing.opposite()),
            (Side::Length, operator, Side::Number(number)) => match (operator, number.as_str()) {
                (Equal | LessOrEqual, "0") | (Less, "1") => Ok(Condition::Nothing),
                (Different | Greater, "0") | (GreaterOrEqual, "1") => Ok(Condition::Nothing.opposite()),
                _ => Err("asks how many values there are: an indicator has one, so have the query return one number".into()),
            },
            _ => Err(other(before)),
        }
    }

    fn side(&mut self) -> Result<Side, String> {
        if self.word("nil") {
            return Ok(Side::Nil);
        }
        if self.call("len") {
            self.result()?;
            return self.end(")").map(|()| Side::Length);
        }
        if self.rest.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) {
            return self.number().map(Side::Number);
        }
        self.result().map(|()| Side::Result)
    }

    fn number(&mut self) -> Result<String, String> {
        let end = self.rest.char_indices().find(|(place, c)| {
            let is_exponent = *place > 0 && self.rest[..*place].ends_with(['e', 'E']);
            !(c.is_ascii_digit() || matches!(c, '.' | '_' | 'e' | 'E') || matches!(c, '-' | '+') && (*place == 0 || is_exponent))
        });
        let (text, rest) = self.rest.split_at(end.map_or(self.rest.len(), |(place, _)| place));
        let plain = text.replace('_', "");
        let number =
            plain.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(|| format!("{text:?} is no number"))?;
        self.rest = rest.trim_start();
        if number < 0.0 {
            let why =
                "a criterion with a sign compares with earlier values: add a number to the query, so that the limit is positive";
            return Err(format!("has the limit {text}, and {why}"));
        }
        Ok(plain.trim_start_matches(['+', '-']).to_owned())
    }

    /// `result`, `result[0]`, `result[0].Values[0]`, `#` in a closure, or one of these as a number.
    fn result(&mut self) -> Result<(), String> {
        let before = self.rest;
        for name in ["asFloat", "float", "asInt"] {
            if self.call(name) {
                self.result()?;
                return self.end(")");
            }
        }
        if self.take("#") {
            return Ok(());
        }
        if !self.word("result") {
            return Err(other(before));
        }
        while self.rest.starts_with(['[', '.']) {
            if !(self.take("[0]") || self.take(".Values")) {
                return Err(format!(
                    "takes a part of the result ({}): an indicator has one number, so have the query return it",
                    shown(before)
                ));
            }
        }
        Ok(())
    }

    /// Takes a sign, and the blanks behind it.
    fn take(&mut self, sign: &str) -> bool {
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.map_or(self.rest, str::trim_start);
        rest.is_some()
    }

    fn word(&mut self, word: &str) -> bool {
        let ends = |rest: &&str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let rest = self.rest.strip_prefix(word).filter(ends);
        self.rest = rest.map_or(self.rest, str::trim_start);
        rest.is_some()
    }

    fn call(&mut self, name: &str) -> bool {
        let before = self.rest;
        if self.word(name) && self.take("(") {
            return true;
        }
        self.rest = before;
        false
    }

    fn end(&mut self, sign: &str) -> Result<(), String> {
        if self.take(sign) { Ok(()) } else { Err(format!("misses `{sign}` before {}", shown(self.rest))) }
    }

    fn unread(&self) -> String {
        other(self.rest)
    }
}

fn compare(operator: Operator, number: String) -> Result<Condition, String> {
    Ok(Condition::Compare(operator, number))
}

fn other(rest: &str) -> String {
    format!(
        "{} is no comparison of the result with a number: compute in the query, and write for example `result[0] < 0.05`",
        shown(rest)
    )
}

fn shown(rest: &str) -> String {
    let text: String = rest.chars().take(40).collect();
    if text.is_empty() { "the end".into() } else { format!("`{text}`") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<String, String> {
        let shown = |entries: Entries| entries.iter().map(|all| all.join(" ")).collect::<Vec<_>>().join(" | ");
        Condition::parse(text)?.entries().map(shown)
    }

    #[test]
    fn conditions_become_entries() {
        for (text, expected) in [
            ("result[0] < 0.01", "<0.01"),
            ("result <= 5 && result >= 1", "<=5 >=1"),
            ("result < 1 or result > 1e3 and result != 2_000", "<1 | >1e3 <2000 | >1e3 >2000"),
            ("0.95 <= asFloat(result[0])", ">=0.95"),
            ("!(result[0] >= 0.05)", "<0.05"),
            ("not (result > 1 && result < 2)", "<=1 | >=2"),
            ("result == 0", "=0"),
            ("result != +1", "<1 | >1"),
            ("!isNaN(result[0]) && result[0] <= .5", "<=.5"),
            ("len(result) > 0 && result[0] > 1", ">1"),
            ("result != nil and not isInf(result) and result > 1", ">1"),
            ("all(result[0].Values, {# <= 0.01})", "<=0.01"),
            ("any(result, # > 3)", ">3"),
            ("!(isNaN(result) || result >= 0.1)", "<0.1"),
        ] {
            assert_eq!(of(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_objectives_cannot_say_is_refused() {
        for (text, why) in [
            ("isNaN(result) || result < 0.05", "`or vector(0)` in PromQL"),
            ("len(result[0].Values) == 0 or all(result[0].Values, {# <= 0.01})", "`FILL(m, 0)` in metric math"),
            ("!isNaN(result)", "holds for every number"),
            ("result > -5", "the limit is positive"),
            ("result[0] * 100 < 5", "`result[0] * 100 < 5` is no comparison"),
            ("result[0] < result[1]", "takes a part of the result (`result[1]`)"),
            ("result.status == 'ok'", "takes a part of the result"),
            ("result == 'true'", "no comparison"),
            ("len(result) > 3", "how many values"),
            ("default(result, 0) < 1", "no comparison"),
            ("(result < 1", "misses `)` before the end"),
            ("result < 1 result", "`result` is no comparison"),
            ("result < 1e999", "is no number"),
            ("", "the end is no comparison"),
            ("result", "no comparison"),
        ] {
            let refused = of(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
        assert!(of(&"!".repeat(100_000)).is_err() && of(&"(".repeat(100_000)).is_err(), "no stack overflows");
        let many = vec!["(result != 1)"; 40].join(" && ");
        assert!(of(&many).unwrap_err().contains("more than 16 alternatives"));
    }
}
