package dev.millrace.cli;

import dev.millrace.api.catalogue.PluginException;
import dev.millrace.cli.audit.NotFoundException;
import dev.millrace.cli.audit.RunOptions;
import dev.millrace.infra.broker.BrokerException;
import dev.millrace.log.run.LogSetupException;
import dev.millrace.log.scan.ScanException;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.NearestKey;
import dev.millrace.runtime.pipeline.StoppedException;
import java.io.PrintWriter;
import java.util.Optional;
import picocli.CommandLine;
import picocli.CommandLine.IExecutionExceptionHandler;
import picocli.CommandLine.IParameterExceptionHandler;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.UnmatchedArgumentException;

/** Prints a failure as one sentence; the stack trace only with {@code --verbose}. */
final class Failures implements IParameterExceptionHandler, IExecutionExceptionHandler {
    /** Exit status of a failure while running; {@code --verbose} adds the stack trace. */
    static final int FAILED = 1;
    /** Exit status of an invalid command line or configuration. */
    static final int MISTAKEN = 2;

    @Override
    public int handleParseException(ParameterException mistake, String[] arguments) {
        CommandLine command = mistake.getCommandLine();
        PrintWriter err = command.getErr();
        Optional<String> unknown = unknownCommand(mistake);
        if (unknown.isPresent()) {
            err.println("millrace: there is no command " + unknown.get());
            err.println(NearestKey.of(unknown.get(), command.getSubcommands().keySet())
                    .map(name -> "Did you mean: " + command.getCommandSpec().qualifiedName() + " " + name + "?")
                    .orElse("See: " + command.getCommandSpec().qualifiedName() + " --help"));
            return MISTAKEN;
        }
        err.println("millrace: " + mistake.getMessage());
        if (!UnmatchedArgumentException.printSuggestions(mistake, err)) {
            err.println("See: " + command.getCommandSpec().qualifiedName() + " --help");
        }
        return MISTAKEN;
    }

    /** The first word in the place of a command; empty for other mistakes. */
    private static Optional<String> unknownCommand(ParameterException mistake) {
        CommandLine command = mistake.getCommandLine();
        return mistake instanceof UnmatchedArgumentException unmatched
                        && !command.getSubcommands().isEmpty()
                        && command.getCommandSpec().positionalParameters().isEmpty()
                ? unmatched.getUnmatched().stream().findFirst().filter(word -> !word.startsWith("-"))
                : Optional.empty();
    }

    @Override
    public int handleExecutionException(Exception thrown, CommandLine command, ParseResult parsed) {
        Exception failure = RunOptions.explained(command.getCommandSpec(), thrown);
        PrintWriter err = command.getErr();
        err.println("millrace: " + sentence(failure));
        if (parsed.originalArgs().contains("--verbose")) {
            failure.printStackTrace(err);
        } else if (!isSelfContained(failure)
                && command.getCommandSpec().optionsMap().containsKey("--verbose")) {
            err.println("(--verbose shows where)");
        }
        if (failure instanceof StoppedException) {
            return StopSignals.INTERRUPTED;
        }
        if (failure instanceof NotFoundException) {
            return NotFoundException.EXIT_CODE;
        }
        return failure instanceof ConfigException || failure instanceof PluginException ? MISTAKEN : FAILED;
    }

    /** Returns whether the message was written for the user, so that neither causes nor a trace would add to it. */
    private static boolean isSelfContained(Throwable failure) {
        return failure instanceof RefusedRequestException
                || failure instanceof ConfigException
                || failure instanceof PluginException
                || failure instanceof StoppedException
                || failure instanceof LogSetupException
                || failure instanceof BrokerException
                || failure instanceof ScanException
                || failure instanceof NotFoundException
                || failure instanceof ArchiveException;
    }

    /** The message and, where it adds something, those of the causes. */
    static String sentence(Throwable failure) {
        StringBuilder text = new StringBuilder(own(failure));
        if (!isSelfContained(failure)) {
            for (Throwable cause = failure.getCause(); cause != null; cause = cause.getCause()) {
                if (cause.getMessage() != null && text.indexOf(cause.getMessage()) < 0) {
                    text.append("; because ").append(own(cause));
                }
            }
        }
        return text.toString();
    }

    private static String own(Throwable failure) {
        return failure.getMessage() == null ? failure.getClass().getSimpleName() : failure.getMessage();
    }
}
