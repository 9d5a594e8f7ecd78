package dev.millrace.generator.environment.remote;

/** In which words a remote environment is spoken to. */
public enum EnvironmentProtocol {
    /** Millrace's own: one JSON object each way, over HTTP or on the lines of a command; a question that is asked again is recognised. */
    MILLRACE,
    /** OpenEnv's WebSocket, as openenv-core 0.2 has it: a connection for each episode, on which nothing is asked twice. */
    OPENENV
}
