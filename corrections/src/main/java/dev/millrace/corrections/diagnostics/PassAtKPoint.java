package dev.millrace.corrections.diagnostics;

/**
 * How often at least one of k responses to a prompt is correct, by three estimators.
 *
 * @param k responses, at least 1
 * @param unbiased over the prompts with at least k responses; its mean is NaN where there is none
 * @param bernoulli extrapolated from each prompt's observed share of correct responses; biased low where prompts are
 *     seldom solved
 * @param betaBinomial extrapolated from the fit over all prompts; NaN without a fit
 */
public record PassAtKPoint(int k, MeanInterval unbiased, double bernoulli, double betaBinomial) {}
