"""Events to topic: reading a file of events, and writing them keyed as the user chose."""
