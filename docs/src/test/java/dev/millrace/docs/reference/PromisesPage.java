package dev.millrace.docs.reference;

import java.util.stream.Collectors;

/** Guarantees of a run, and the tests that hold them. */
final class PromisesPage {
    private PromisesPage() {}

    static String text() {
        return "# Promises\n\nWhat a run keeps under faults, with the tests that inject the fault and check. "
                + "[Measurements](../measurements/faults.md) on real\nprocesses.\n\n"
                + Tables.head("promise", "held by")
                + Promises.all().stream()
                        .map(promise -> Tables.row(
                                promise.text(),
                                promise.tests().stream().map(Tables::code).collect(Collectors.joining(", "))))
                        .collect(Collectors.joining());
    }
}
