package dev.millrace.audit.trace;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/**
 * Something that happened to a rollout.
 *
 * @param timeMs when, Unix milliseconds
 * @param what in a word or two
 * @param details sentences
 * @param place of the record that tells of it, without the run's prefix
 * @param data the same for a program
 */
public record RolloutEvent(long timeMs, String what, List<String> details, String place, ObjectNode data) {}
