# Writes wilcoxon.json: what R's wilcox.test says of forty pairs of series, as Kayenta asks it.
#
#     Rscript wilcoxon.R > wilcoxon.json
#
# R is not needed for the tests. Version 4.2 wrote the file.
set.seed(20261127)
draw <- function(kind, n, shift) {
  values <- switch(kind,
    normal = rnorm(n, 120, 15) * (1 + shift),
    skewed = rlnorm(n, 4, 0.6) * (1 + shift),
    counts = rpois(n, 12 * (1 + shift)),
    rates = round(rbeta(n, 2, 60) * (1 + shift), 3))
  round(values, 3)
}
numbers <- function(values) paste0("[", paste(format(values, digits = 12, trim = TRUE), collapse = ", "), "]")
pairs <- vapply(1:40, function(at) {
  kind <- c("normal", "skewed", "counts", "rates")[(at - 1) %% 4 + 1]
  baseline <- draw(kind, sample(8:60, 1), 0)
  canary <- draw(kind, sample(8:60, 1), sample(c(0, 0, 0.1, 0.3, -0.2), 1))
  level <- sample(c(0.98, 0.98, 0.95), 1)
  said <- suppressWarnings(wilcox.test(canary, baseline, conf.int = TRUE, conf.level = level, exact = FALSE, correct = TRUE))
  sprintf('{"confidence": %s, "baseline": %s, "canary": %s, "lower": %.6f, "upper": %.6f, "estimate": %.6f}',
    level, numbers(baseline), numbers(canary), said$conf.int[1], said$conf.int[2], said$estimate)
}, "")
cat("[\n", paste(pairs, collapse = ",\n"), "\n]\n", sep = "")
