package dev.millrace.gateway.engine;

/**
 * Tokens of an answer that one version of the weights sampled, as the engine says.
 *
 * @param label of the version
 * @param start first token of the answer
 * @param end behind the last
 */
record LabelSpan(String label, int start, int end) {}
