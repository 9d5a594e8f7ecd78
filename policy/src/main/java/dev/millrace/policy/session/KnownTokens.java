package dev.millrace.policy.session;

/**
 * Tokens that a slot's sequence goes on with and of which nothing is to be said: a prompt, or a part of one.
 *
 * @param tokens at least one; not copied
 */
public record KnownTokens(int slot, int[] tokens) {}
