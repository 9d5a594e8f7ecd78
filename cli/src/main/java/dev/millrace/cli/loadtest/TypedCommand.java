package dev.millrace.cli.loadtest;

import picocli.CommandLine.Model.CommandSpec;

/** What was typed, as a command line; reports name it as their origin. */
final class TypedCommand {
    private TypedCommand() {}

    static String of(CommandSpec spec) {
        return "./millrace "
                + String.join(" ", spec.root().commandLine().getParseResult().originalArgs());
    }
}
