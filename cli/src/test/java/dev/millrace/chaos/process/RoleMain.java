package dev.millrace.chaos.process;

import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import java.util.Optional;

/**
 * The main class of a process that must not outlive who started it: runs another main method, and halts when that process is gone,
 * however it ended.
 *
 * <p>Arguments: the number of the process to outlive by nothing, the main class, and that class's own arguments.
 */
public final class RoleMain {
    /** Exit status of a process that was left alone. */
    static final int LEFT_ALONE = 87;

    private static final int OWN_ARGUMENTS = 2;

    private RoleMain() {}

    /** Never to be called but by the JVM. */
    public static void main(String[] args) throws ReflectiveOperationException {
        haltAfter(Long.parseLong(args[0]));
        try {
            Class.forName(args[1]).getMethod("main", String[].class).invoke(null, (Object)
                    Arrays.copyOfRange(args, OWN_ARGUMENTS, args.length));
        } catch (InvocationTargetException e) {
            throw new IllegalStateException(args[1] + " failed: " + e.getCause(), e.getCause());
        }
    }

    private static void haltAfter(long pid) {
        Optional<ProcessHandle> parent = ProcessHandle.of(pid);
        if (parent.isEmpty()) { // it was gone before this one looked
            halt();
            return;
        }
        parent.get().onExit().thenRun(RoleMain::halt);
    }

    private static void halt() {
        Runtime.getRuntime().halt(LEFT_ALONE);
    }
}
