package dev.millrace.api.environment;

/**
 * A record of settings that a task is made of; the door through which tasks come. {@code task: inc} or {@code task: {kind: inc,
 * digits: 7}} chooses one.
 *
 * <p>Two equal records make tasks that release the same prompts and play them the same way, on every machine.
 */
public interface TaskSettings {

    /** The task. Asked often, and on machines that only look at a run: what is costly begins with the first prompt. */
    Task task();
}
