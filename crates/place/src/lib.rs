//! What a backend must answer, and the host's side of the pipe
