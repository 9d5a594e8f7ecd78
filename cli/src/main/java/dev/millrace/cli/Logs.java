package dev.millrace.cli;

import java.nio.file.Path;
import java.util.Map;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.config.Configurator;
import picocli.CommandLine;
import picocli.CommandLine.ParameterException;

/**
 * Log target and level of a command: a run logs to a file in its folder, a role to standard error, any other command
 * only Millrace's warnings to standard error. {@code log4j2.xml} reads the properties set here.
 */
public final class Logs {
    private static final String FILE = "millrace.log";
    private static final String FORMAT = "millrace.log.format";
    private static final String LEVEL = "millrace.log.level";
    private static final String OTHERS = "millrace.log.others";
    private static final String BROKER = "millrace.log.broker";
    private static final String VARIABLE = "MILLRACE_LOG_FORMAT";
    private static final String TEXT = "text";
    private static final String JSON = "json";
    private static final String DEBUG = "debug";

    private Logs() {}

    /**
     * Before any command.
     *
     * @throws ParameterException if the environment names an unknown format
     */
    static void ofCommand(CommandLine command, boolean verbose, Map<String, String> environment) {
        String format = environment.getOrDefault(VARIABLE, TEXT);
        if (!format.equals(TEXT) && !format.equals(JSON)) {
            throw new ParameterException(
                    command, "the environment's " + VARIABLE + " must be text or json: '" + format + "'");
        }
        System.setProperty(FORMAT, format);
        if (verbose) {
            write(DEBUG);
        } else if (System.getProperty(LEVEL) == null) {
            System.setProperty(LEVEL, "warn");
            System.setProperty(OTHERS, "off");
            System.setProperty(BROKER, "off");
        }
    }

    /** Logs a role's messages and its libraries' warnings to standard error. */
    public static void ofRole() {
        write(DEBUG.equals(System.getProperty(LEVEL)) ? DEBUG : "info");
    }

    /** As {@link #ofRole}, into a file. */
    public static void ofRun(Path file) {
        System.setProperty(FILE, file.toString());
        ofRole();
    }

    private static void write(String level) {
        System.setProperty(LEVEL, level);
        System.setProperty(OTHERS, "warn");
        System.setProperty(BROKER, "error");
        if (LogManager.getFactory().hasContext(Logs.class.getName(), Logs.class.getClassLoader(), false)) {
            Configurator.reconfigure();
        }
    }
}
