//! A quota by the second.

use keelway_domain::time::{Span, Timestamp};

/// Tokens that come at a steady rate by the world's clock, at most those of one second at once.
#[derive(Debug, Clone)]
pub struct Bucket {
    rate: f64,
    tokens: f64,
    at: Timestamp,
    used: f64,
    /// Requests, or parts of requests, for which there were no tokens.
    pub refused: u64,
}

impl Bucket {
    /// A full one.
    pub fn new(rate: f64, now: Timestamp) -> Self {
        Self { rate, tokens: rate.max(1.0), at: now, used: 0.0, refused: 0 }
    }

    fn refill(&mut self, now: Timestamp) {
        let millis = (now - self.at).0.max(0);
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let came = self.rate * millis as f64 / 1000.0;
        self.tokens = (self.tokens + came).min(self.rate.max(1.0));
        self.at = self.at.max(now);
    }

    /// Whether any token is left. What a request takes is known when it is done, and may be more than there is.
    pub fn admits(&mut self, now: Timestamp) -> bool {
        self.refill(now);
        let admitted = self.tokens > 0.0;
        self.refused += u64::from(!admitted);
        admitted
    }

    /// Takes what a request that was admitted has used.
    pub fn spend(&mut self, tokens: f64) {
        self.tokens -= tokens;
        self.used += tokens;
    }

    /// Takes as many whole tokens as there are, at most so many.
    pub fn take(&mut self, now: Timestamp, wanted: usize) -> usize {
        self.refill(now);
        let mut taken = 0;
        while taken < wanted && self.tokens >= 1.0 {
            self.spend(1.0);
            taken += 1;
        }
        self.refused += (wanted - taken) as u64;
        taken
    }

    /// When there will be a whole token.
    pub fn next(&self) -> Timestamp {
        #[expect(clippy::cast_possible_truncation, reason = "a second or so")]
        let millis = ((1.0 - self.tokens).max(0.0) / self.rate * 1000.0).ceil() as i64;
        self.at + Span(millis.max(1))
    }

    /// Counts what is used from here on.
    pub fn count_anew(&mut self) {
        self.used = 0.0;
    }

    /// How many seconds it takes at least to use what was used.
    pub fn seconds(&self) -> f64 {
        self.used / self.rate
    }
}
