"""Where Kafka is: client settings, topics and their offsets, and brokers the program can start itself."""
