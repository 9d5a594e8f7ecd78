package dev.millrace.cli;

import dev.millrace.runtime.config.ConfigException;
import java.nio.file.Path;
import java.util.Map;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.config.Configurator;

/**
 * Where a command logs, and how much: a run into a file of its folder, a role to standard error, any other command nothing but
 * Millrace's own warnings, to standard error. {@code log4j2.xml} reads the properties that are set here.
 */
public final class Logs {
    private static final String FILE = "millrace.log";
    private static final String FORMAT = "millrace.log.format";
    private static final String LEVEL = "millrace.log.level";
    private static final String OTHERS = "millrace.log.others";
    private static final String VARIABLE = "MILLRACE_LOG_FORMAT";
    private static final String TEXT = "text";
    private static final String JSON = "json";
    private static final String DEBUG = "debug";

    private Logs() {}

    /**
     * Before any command.
     *
     * @throws ConfigException if the environment asks for a format that is none
     */
    static void ofCommand(boolean verbose, Map<String, String> environment) {
        String format = environment.getOrDefault(VARIABLE, TEXT);
        if (!format.equals(TEXT) && !format.equals(JSON)) {
            throw new ConfigException("the environment's " + VARIABLE + " must be text or json: '" + format + "'");
        }
        System.setProperty(FORMAT, format);
        if (verbose) {
            write(DEBUG, "warn");
        } else if (System.getProperty(LEVEL) == null) {
            System.setProperty(LEVEL, "warn");
            System.setProperty(OTHERS, "off");
        }
    }

    /** To standard error, what a role does and what its libraries warn of. */
    public static void ofRole() {
        write(DEBUG.equals(System.getProperty(LEVEL)) ? DEBUG : "info", "warn");
    }

    /** As {@link #ofRole}, into a file. */
    public static void ofRun(Path file) {
        System.setProperty(FILE, file.toString());
        ofRole();
    }

    private static void write(String level, String others) {
        System.setProperty(LEVEL, level);
        System.setProperty(OTHERS, others);
        if (LogManager.getFactory().hasContext(Logs.class.getName(), Logs.class.getClassLoader(), false)) {
            Configurator.reconfigure();
        }
    }
}
