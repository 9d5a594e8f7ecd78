package dev.millrace.gateway;

import org.jspecify.annotations.Nullable;

/**
 * What a turn begins with.
 *
 * @param parent the turn that it continues from; null where the prompt is its own
 * @param context token ids behind the parent's last; the whole prompt where there is no parent
 * @param tokens all of them, those of the branch so far and the context
 * @param text of all of them as it was rendered or given; null where ids were given
 * @param forkTurn of a prompt of its own, the turn with which it has the longest beginning in common; -1 where there is none
 * @param forkPosition so many tokens of it
 */
record TurnPrompt(
        @Nullable PlayedTurn parent,
        int[] context,
        int[] tokens,
        @Nullable String text,
        int forkTurn,
        int forkPosition) {}
