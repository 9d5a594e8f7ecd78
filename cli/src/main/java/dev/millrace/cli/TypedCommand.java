package dev.millrace.cli;

import picocli.CommandLine.Model.CommandSpec;

/** What was typed, as a command line; reports name it as their origin. */
public final class TypedCommand {
    private TypedCommand() {}

    /** Of the command that a specification belongs to. */
    public static String of(CommandSpec spec) {
        return "./millrace "
                + String.join(" ", spec.root().commandLine().getParseResult().originalArgs());
    }
}
