package dev.millrace.policy.session;

/**
 * Tokens to append to a slot's sequence without outputs for them: a prompt, or a part of one.
 *
 * @param tokens at least one; not copied
 */
public record KnownTokens(int slot, int[] tokens) {}
