package dev.millrace.cli;

import dev.millrace.log.SecretText;
import java.util.List;
import java.util.stream.Collectors;
import picocli.CommandLine.Model.CommandSpec;

/** The typed command line without secrets; reports name it as their origin. */
public final class TypedCommand {
    private static final String CLIENT_SETTING = "kafka.";
    private static final String SET = "--set=";

    private TypedCommand() {}

    public static String of(CommandSpec spec) {
        return of(spec.root().commandLine().getParseResult().originalArgs());
    }

    static String of(List<String> arguments) {
        return arguments.stream().map(TypedCommand::shown).collect(Collectors.joining(" ", "./millrace ", ""));
    }

    /** Redacts secret client settings, and credentials in addresses. */
    private static String shown(String argument) {
        String option = argument.startsWith(SET) ? SET : "";
        String setting = argument.substring(option.length());
        int equals = setting.indexOf('=');
        if (equals > CLIENT_SETTING.length() && setting.startsWith(CLIENT_SETTING)) {
            String name = setting.substring(CLIENT_SETTING.length(), equals);
            return option
                    + setting.substring(0, equals + 1)
                    + SecretText.ofSetting(name, setting.substring(equals + 1)).shown();
        }
        return SecretText.ofAddress(argument).shown();
    }
}
