package dev.millrace.conformance;

import com.fasterxml.jackson.databind.node.ObjectNode;

/** What became of one case; {@link #name} and {@link #family} are the case's own. */
public sealed interface CaseResult {
    String name();

    String family();

    /** Millrace's numbers. */
    record Computed(String name, String family, ObjectNode output) implements CaseResult {}

    /** The input was refused, which is an answer: the reference may refuse it too. */
    record Refused(String name, String family, String message) implements CaseResult {}

    /** No answer: an unknown family or option, a malformed case, or a defect of ours. */
    record Failed(String name, String family, String message) implements CaseResult {}
}
