package dev.millrace.cli;

import dev.millrace.report.Lines;
import java.io.PrintWriter;
import java.util.concurrent.Callable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** A command with its output, which is flushed at every line end. */
public abstract class ScreenCommand implements Callable<Integer> {
    @Spec
    protected CommandSpec spec;

    protected final PrintWriter out() {
        return spec.commandLine().getOut();
    }

    protected final PrintWriter err() {
        return spec.commandLine().getErr();
    }

    protected final void paragraph(String text) {
        paragraph("", text);
    }

    /** Prints a text, wrapped to the screen's width. */
    protected final void paragraph(String indent, String text) {
        Lines.wrapped(indent, text).forEach(out()::println);
    }

    /** Prints a text beside its label, wrapped to the screen's width. */
    protected final void labelled(String label, String text) {
        Lines.labelled(label, text).forEach(out()::println);
    }

    /** Failure for a mistake in the command line. */
    protected final ParameterException mistake(String sentence) {
        return new ParameterException(spec.commandLine(), sentence);
    }

    protected final ParameterException mistake(String sentence, Throwable cause) {
        return new ParameterException(spec.commandLine(), sentence, cause);
    }
}
